// The exact best documents of many queries, each over its own lists.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace repconc {

struct Range {
    std::int64_t start, stop;  // positions of a list
    float gain = 1.0f;         // what its scores are multiplied by: a positive number
};

struct Codes {
    const std::uint8_t* bytes;    // list after list, in blocks
    std::size_t M;                // bytes a code
    const std::uint8_t* allowed;  // a bit a position, or null
    std::size_t allowed_bytes;
};

struct Found {
    std::vector<std::int64_t> positions;
    std::vector<float> scores;
};

// For each query the k best documents of its lists, and all that tie with the k-th; in no order.
// tables: [queries, M, 256]; lists: for each query its lists, none twice, the most promising first, each in as many parts as
// there are classes.
// `interrupted` is asked now and then, by the calling thread; where it says yes the result is of no use.
std::vector<Found> scan(const Codes& codes, const float* tables, const std::vector<std::vector<Range>>& lists,
                        std::size_t classes, std::size_t k, std::size_t threads, const std::function<bool()>& interrupted);

}  // namespace repconc
