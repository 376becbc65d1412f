// Which lists a query reads: those whose centroids have the highest inner products with it, exactly.

#pragma once

#include <cstddef>
#include <cstdint>

namespace repconc {

// Of a centroid as bytes: centroid = scale * levels + a rest whose norm is `error`.
struct Level {
    float scale, error, norm;
};

struct Centroids {
    const std::uint16_t* halves;  // [L, D] half floats
    const std::int8_t* levels;    // [L, width], padded with zeros
    const Level* about;           // [L]
    std::size_t L, D, width;
};

std::size_t level_width(std::size_t D);
void make_levels(const std::uint16_t* halves, std::size_t L, std::size_t D, std::int8_t* levels, Level* about);

// best: [B, count], the best first; of two that are equal the lower number. queries: [B, D]
void best_lists(const Centroids& centroids, const float* queries, std::size_t B, std::size_t count, std::int64_t* best);

}  // namespace repconc
