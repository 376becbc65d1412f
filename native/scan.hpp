// The scan: sums of one-byte table entries over blocks of documents, one file per instruction set.
//
// Codes of a list lie in blocks of 64 documents, byte m of all 64 side by side, so that one load brings 64 codes to look
// up in table m. The last block of a list holds fewer; its rows are as long as it has documents, and nothing is padded.
//
//     block of r documents:   c[0][0..r-1]  c[1][0..r-1]  ...  c[M-1][0..r-1]

#pragma once

#include <cstddef>
#include <cstdint>

namespace repconc {

constexpr std::size_t kBlock = 64;
constexpr std::size_t kGroup = 4;  // whole blocks that are scanned together, so that a table is loaded once for all of them

// For each document of a block of `rows` <= 64: the sum over m of tables[m][code], M <= 257 so that 16 bits hold it.
// Gives a bit for each document whose sum is at least `threshold`; sums of the others may be left unset.
using BlockSums = std::uint64_t (*)(const std::uint8_t* codes, std::size_t blocks_of_codes, std::size_t rows,
                                    const std::uint8_t* tables, std::uint16_t threshold, std::uint16_t* sums);

// The same for kGroup whole blocks that follow each other: a word of bits and 64 sums for each.
using GroupSums = void (*)(const std::uint8_t* codes, std::size_t blocks_of_codes, const std::uint8_t* tables,
                           std::uint16_t threshold, std::uint64_t* above, std::uint16_t* sums);

// A row of half floats as floats, and the inner product of two rows of floats. A row of centroids is converted once for all
// queries of a batch, and a query has the same products alone and in a batch.
using FromHalves = void (*)(const std::uint16_t* halves, std::size_t dimension, float* floats);
using Product = float (*)(const float* left, const float* right, std::size_t dimension);

void from_halves_portable(const std::uint16_t*, std::size_t, float*);
float product_portable(const float*, const float*, std::size_t);
std::uint64_t block_sums_portable(const std::uint8_t*, std::size_t, std::size_t, const std::uint8_t*, std::uint16_t,
                                  std::uint16_t*);
#if defined(__aarch64__)
std::uint64_t block_sums_neon(const std::uint8_t*, std::size_t, std::size_t, const std::uint8_t*, std::uint16_t,
                              std::uint16_t*);
#endif
#if defined(__x86_64__)
void from_halves_avx2(const std::uint16_t*, std::size_t, float*);
float product_avx2(const float*, const float*, std::size_t);
std::uint64_t block_sums_avx2(const std::uint8_t*, std::size_t, std::size_t, const std::uint8_t*, std::uint16_t,
                              std::uint16_t*);
void group_sums_avx512vbmi(const std::uint8_t*, std::size_t, const std::uint8_t*, std::uint16_t, std::uint64_t*,
                           std::uint16_t*);
void from_halves_avx512vbmi(const std::uint16_t*, std::size_t, float*);
float product_avx512vbmi(const float*, const float*, std::size_t);
std::uint64_t block_sums_avx512vbmi(const std::uint8_t*, std::size_t, std::size_t, const std::uint8_t*, std::uint16_t,
                                    std::uint16_t*);
#endif

// For instruction sets that gain nothing from a group: one block after the other.
template <BlockSums sums_of_block>
void group_of_blocks(const std::uint8_t* codes, std::size_t M, const std::uint8_t* tables, std::uint16_t threshold,
                     std::uint64_t* above, std::uint16_t* sums) {
    for (std::size_t block = 0; block < kGroup; ++block)
        above[block] = sums_of_block(codes + block * kBlock * M, M, kBlock, tables, threshold, sums + block * kBlock);
}

}  // namespace repconc
