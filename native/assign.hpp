// Which list a coded document belongs to: the one whose centroid is nearest to its decoded vector.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "rounding.hpp"

namespace repconc {

// M blocks of d dimensions, K codewords a block; L lists.
struct Sizes {
    std::size_t M, d, K, L;
};

class Assigner {
  public:
    // centroids: [L, M * d]; codebooks: [M, d, K]
    Assigner(const Sizes& sizes, const float* centroids, const float* codebooks);

    // owners [n], and squared distances [n]. codes: [n, M]
    void nearest(const std::uint8_t* codes, std::size_t n, std::size_t threads, std::int64_t* owners, float* distances) const;

    const Sizes sizes;

  private:
    void assign(const std::uint8_t* codes, std::size_t n, std::int64_t* owners, float* distances) const;

    std::vector<float> centroids_, words_, half_norms_;  // [L, M * d], [M, K, d], [L]
    Rounding rounding_;
    std::vector<std::uint8_t> tables_;  // of all centroids, with one step for all of them
    // What a rounded sum lacks [L]: the closeness <x, c> - |c|^2 / 2 of a document is about (sum + lacking) steps, and a
    // number that is the same for all lists.
    std::vector<float> lacking_;
};

}  // namespace repconc
