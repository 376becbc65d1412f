// The exact best documents of many queries, each over its own lists.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace repconc {

struct Range {
    std::int64_t start, stop;   // positions of a list
    const std::int64_t* stops;  // where each of its classes ends, in their order; the last one at the end of the list
};

struct Codes {
    const std::uint8_t* bytes;    // list after list, in blocks
    std::size_t M;                // bytes a code
    std::size_t first;            // of which so many are scanned
    const std::uint8_t* allowed;  // a bit a position, or null
    std::size_t allowed_bytes;
};

struct Found {
    std::vector<std::int64_t> positions;
    std::vector<float> scores;
};

// How many documents are wanted: the k best; where not all bytes of a code are scanned, of the `depth` best by the first of them.
struct Wanted {
    std::size_t k, depth;
};

// For each query the k best documents of its lists, and all that tie with the k-th; in no order.
// tables: [queries, M, 256]; lists: for each query its lists, none twice, the most promising first; gains: what the scores of each
// class of documents are multiplied by, positive numbers.
// `interrupted` is asked now and then, by the calling thread; where it says yes the result is of no use.
std::vector<Found> scan(const Codes& codes, const float* tables, const std::vector<std::vector<Range>>& lists,
                        const std::vector<float>& gains, Wanted wanted, std::size_t threads, const std::function<bool()>& interrupted);

}  // namespace repconc
