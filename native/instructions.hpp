// What a search does with many numbers at once, one file per instruction set; which one runs is chosen at run time.
//
// Codes of a list lie in blocks of 64 documents, byte m of all 64 side by side, so that one load brings 64 codes to look
// up in table m. The last block of a list holds fewer; its rows are as long as it has documents, and nothing is padded.
//
//     block of r documents:   c[0][0..r-1]  c[1][0..r-1]  ...  c[M-1][0..r-1]
//
// Sizes: M bytes a code, K codewords and d dimensions a block of the codec, D dimensions.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace repconc {

constexpr std::size_t kBlock = 64;
constexpr std::size_t kGroup = 4;  // whole blocks that are scanned together, so that a table is loaded once for all of them
constexpr int kHighest = 127;           // of the entries of a rounded table: two of them fit into a byte
constexpr std::size_t kWidest = 257;    // bytes of a code: the sum of their entries, in twice as many tables, fits into 16 bits
constexpr std::size_t kEntries = 256;   // of a table; where there are fewer codewords, the last one is repeated
constexpr std::size_t kLevelRow = 128;  // rows of bytes, of centroids and codewords, are padded with zeros to a multiple of this

// A query's tables as bytes [M + more][256]. Those beyond M are further parts of wide ones: `again` says to which byte of a
// code each of them belongs.
struct Rounded {
    const std::uint8_t* tables;
    const std::uint16_t* again = nullptr;
    std::size_t more = 0;
};

// A query while a group of blocks is scanned: its tables, the least sum that counts; and what is found, a word of bits and 64
// sums for each block.
struct Asked {
    Rounded query;
    std::uint16_t threshold;
    std::uint64_t above[kGroup];
    std::uint16_t sums[kGroup * kBlock];
};

struct Instructions {
    const char* name;

    // Look-up tables of a query [M, d]: tables[m][j] = sum over i of query[m][i] * codebooks[m][i][j], added up for
    // i = 0 .. d - 1 without fused operations, so that they have the same bits on every machine.
    void (*make_tables)(const float* codebooks, const float* query, std::size_t M, std::size_t d, std::size_t K,
                        float* tables);

    // The inner products of rows of bytes [count, width] with queries as 16-bit numbers [asked, width]: sums [asked, count].
    void (*row_products)(const std::int8_t* rows, std::size_t count, const std::int16_t* queries, std::size_t asked,
                         std::size_t width, std::int32_t* sums);

    // from[j] -= rows[0][j], then rows[1][j] and so on, for j = 0 .. size - 1.
    void (*subtract_rows)(const float* const* rows, std::size_t count, std::size_t size, float* from);

    // The least and the largest entry of each table [M]; false where a table holds what is no finite number.
    bool (*find_bounds)(const float* tables, std::size_t M, float* least, float* largest);

    // Tables as bytes: (t - least of its table) * steps, rounded; `steps` is at most kHighest over the widest of them.
    void (*round_tables)(const float* tables, std::size_t M, const float* least, double steps, std::uint8_t* rounded);

    // For each document of a block of `rows` <= 64: the sum of the tables' entries for its code, M <= kWidest.
    // Gives a bit for each document whose sum is at least `threshold`; sums of the others may be left unset.
    std::uint64_t (*block_sums)(const std::uint8_t* codes, std::size_t M, std::size_t rows, const Rounded& query,
                                std::uint16_t threshold, std::uint16_t* sums);

    // The same for kGroup whole blocks, `stride` bytes from one to the next, and for some queries; M may be less than the bytes
    // of a code. `ahead` is where the next group lies, which is fetched from memory meanwhile.
    void (*group_sums)(const std::uint8_t* codes, std::size_t stride, std::size_t M, Asked* queries, std::size_t count,
                       const std::uint8_t* ahead);

    // The inner products of one row, a centroid, with some queries [count, width]; all rows are padded.
    void (*level_products)(const std::int8_t* centroid, const std::int16_t* queries, std::size_t count, std::size_t width,
                           std::int32_t* products);

    // A row of half floats as floats, and the inner product of two rows of floats.
    void (*from_halves)(const std::uint16_t* halves, std::size_t D, float* floats);
    float (*product)(const float* left, const float* right, std::size_t D);
};

// The best that this machine has, or what the environment variable REPCONC_KERNEL asks for.
const Instructions& instructions();

// Another one by its name; for tests, while nobody searches.
void use(const std::string& name);

extern const Instructions kPortable;
#if defined(__x86_64__)
extern const Instructions kAvx2, kAvx512Vbmi;
#elif defined(__aarch64__)
extern const Instructions kNeon;
#endif

// For instruction sets that gain nothing from several queries at once: one after the other.
template <auto product_of_two>
void products_one_by_one(const std::int8_t* centroid, const std::int16_t* queries, std::size_t count, std::size_t width,
                         std::int32_t* products) {
    for (std::size_t query = 0; query < count; ++query) products[query] = product_of_two(centroid, queries + query * width, width);
}

// For instruction sets that gain nothing from a group: one block after the other.
template <auto block_sums>
void group_of_blocks(const std::uint8_t* codes, std::size_t stride, std::size_t M, Asked* queries, std::size_t count,
                     const std::uint8_t*) {
    for (Asked* query = queries; query < queries + count; ++query)
        for (std::size_t block = 0; block < kGroup; ++block)
            query->above[block] = block_sums(codes + block * stride, M, kBlock, query->query, query->threshold,
                                             query->sums + block * kBlock);
}

}  // namespace repconc
