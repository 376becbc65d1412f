// What other instruction sets fall back on: for a rest that does not fill a register, or where they have nothing better.

#pragma once

#include "instructions.hpp"

namespace repconc {

void from_halves_portable(const std::uint16_t* halves, std::size_t D, float* floats);
float product_portable(const float* left, const float* right, std::size_t D);
std::int32_t level_product_portable(const std::int8_t* centroid, const std::int16_t* query, std::size_t width);
void row_products_portable(const std::int8_t* rows, std::size_t count, const std::int16_t* queries, std::size_t asked,
                           std::size_t width, std::int32_t* sums);
std::uint64_t block_sums_portable(const std::uint8_t* codes, std::size_t M, std::size_t rows, const Rounded& query,
                                  std::uint16_t threshold, std::uint16_t* sums);

}  // namespace repconc
