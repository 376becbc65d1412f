// NEON: one instruction (`tbl` with four registers) looks up 64 entries for 16 codes and gives zero beyond them. Four of
// them, with 0, 64, 128 and 192 taken off the codes, cover a table of 256; their results are joined by OR.

#include <arm_neon.h>

#include "portable.hpp"
#include "tables.hpp"

namespace repconc {
namespace {

inline uint8x16_t look_up(uint8x16_t code, const std::uint8_t* table) {
    uint8x16_t entry = vdupq_n_u8(0);
    for (int part = 0; part < 4; ++part) {
        const uint8x16x4_t entries = vld1q_u8_x4(table + 64 * part);
        entry = vorrq_u8(entry, vqtbl4q_u8(entries, vsubq_u8(code, vdupq_n_u8(static_cast<std::uint8_t>(64 * part)))));
    }
    return entry;
}

std::uint64_t block_sums(const std::uint8_t* codes, std::size_t M, std::size_t rows, const Rounded& query,
                         std::uint16_t threshold, std::uint16_t* sums) {
    if (rows < kBlock) return block_sums_portable(codes, M, rows, query, threshold, sums);
    uint16x8_t totals[8];
    for (auto& total : totals) total = vdupq_n_u16(0);
    const auto add = [&](std::size_t m, std::size_t table) {
        for (std::size_t part = 0; part < 4; ++part) {
            const uint8x16_t entry = look_up(vld1q_u8(codes + m * kBlock + 16 * part), query.tables + table * kEntries);
            totals[2 * part] = vaddw_u8(totals[2 * part], vget_low_u8(entry));
            totals[2 * part + 1] = vaddw_u8(totals[2 * part + 1], vget_high_u8(entry));
        }
    };
    for (std::size_t m = 0; m < M; ++m) add(m, m);
    for (std::size_t part = 0; part < query.more; ++part) add(query.again[part], M + part);
    const uint16x8_t least = vdupq_n_u16(threshold);
    std::uint64_t above = 0;
    for (std::size_t part = 0; part < 8; ++part) {
        vst1q_u16(sums + 8 * part, totals[part]);
        if (vmaxvq_u16(vcgeq_u16(totals[part], least)))
            for (std::size_t row = 8 * part; row < 8 * part + 8; ++row)
                above |= static_cast<std::uint64_t>(sums[row] >= threshold) << row;
    }
    return above;
}

}  // namespace

const Instructions kNeon = {
    "neon", make_tables, row_products_portable, subtract_rows, find_bounds, round_tables, block_sums, group_of_blocks<block_sums>,
    products_one_by_one<level_product_portable>, from_halves_portable, product_portable,
};

}  // namespace repconc
