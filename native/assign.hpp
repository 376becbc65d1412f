// Which list a coded document belongs to: the one whose centroid is nearest to its decoded vector.

#pragma once

#include <cstddef>
#include <cstdint>

namespace repconc {

// M blocks of d dimensions, K codewords a block; L lists.
struct Sizes {
    std::size_t M, d, K, L;
};

// Tables [L, M, 256] of all centroids as bytes with one step for all of them, and what a rounded sum lacks [L]: the closeness
// <x, c> - |c|^2 / 2 of a document is about (sum + lacking) steps, and a number that is the same for all lists. centroids: [L, M * d]; codebooks: [M, d, K]
void prepare(const Sizes& sizes, const float* centroids, const float* codebooks, std::uint8_t* tables, float* lacking);

// owners [n], and squared distances [n]. codes: [n, M]; words: the codebooks as [M, K, d]
void nearest(const Sizes& sizes, const std::uint8_t* codes, std::size_t n, const std::uint8_t* tables, const float* lacking,
             const float* centroids, const float* words, std::size_t threads, std::int64_t* owners, float* distances);

}  // namespace repconc
