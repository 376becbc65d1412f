// For any machine: plain loops, which compilers unroll.

#include "portable.hpp"

#include <bit>

#include "tables.hpp"

namespace repconc {
namespace {

// IEEE half to single precision: move exponent and fraction to their places; scaling puts subnormal numbers right.
float from_half(std::uint16_t half) {
    const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
    const std::uint32_t rest = static_cast<std::uint32_t>(half & 0x7fffu) << 13;
    const float scaled = std::bit_cast<float>(rest) * 0x1p112f;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(scaled) | sign);
}

}  // namespace

void from_halves_portable(const std::uint16_t* halves, std::size_t dimension, float* floats) {
    for (std::size_t i = 0; i < dimension; ++i) floats[i] = from_half(halves[i]);
}

float product_portable(const float* left, const float* right, std::size_t dimension) {
    float sums[8] = {};
    std::size_t i = 0;
    for (; i + 8 <= dimension; i += 8)
        for (std::size_t lane = 0; lane < 8; ++lane) sums[lane] += left[i + lane] * right[i + lane];
    for (; i < dimension; ++i) sums[i % 8] += left[i] * right[i];
    return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

std::int32_t level_product_portable(const std::int8_t* centroid, const std::int16_t* query, std::size_t width) {
    std::int32_t total = 0;
    for (std::size_t i = 0; i < width; ++i) total += std::int32_t{centroid[i]} * query[i];
    return total;
}

void row_products_portable(const std::int8_t* rows, std::size_t count, const std::int16_t* queries, std::size_t asked,
                           std::size_t width, std::int32_t* sums) {
    for (std::size_t query = 0; query < asked; ++query)
        for (std::size_t row = 0; row < count; ++row)
            sums[query * count + row] = level_product_portable(rows + row * width, queries + query * width, width);
}

std::uint64_t block_sums_portable(const std::uint8_t* codes, std::size_t M, std::size_t rows,
                                  const Rounded& query, std::uint16_t threshold, std::uint16_t* sums) {
    constexpr std::size_t kTogether = 8;  // sums that stay in registers
    const auto add = [&](std::size_t row, std::size_t count) {
        std::uint32_t totals[kTogether] = {};
        for (std::size_t part = 0; part < M + query.more; ++part) {
            const std::uint8_t* const own = codes + (part < M ? part : query.again[part - M]) * rows + row;
            for (std::size_t i = 0; i < count; ++i) totals[i] += query.tables[part * kEntries + own[i]];
        }
        for (std::size_t i = 0; i < count; ++i) sums[row + i] = static_cast<std::uint16_t>(totals[i]);
    };
    std::size_t row = 0;
    for (; row + kTogether <= rows; row += kTogether) add(row, kTogether);
    if (row < rows) add(row, rows - row);
    std::uint64_t above = 0;
    for (std::size_t row = 0; row < rows; ++row) above |= static_cast<std::uint64_t>(sums[row] >= threshold) << row;
    return above;
}

const Instructions kPortable = {
    "portable", make_tables, row_products_portable, subtract_rows, find_bounds, round_tables, block_sums_portable, group_of_blocks<block_sums_portable>,
    products_one_by_one<level_product_portable>, from_halves_portable, product_portable,
};

}  // namespace repconc
