// AVX-512 with VBMI and VNNI: a table of 256 bytes fills four registers, and two permutes with a blend look up 64 codes at once.

#include <immintrin.h>

#include "portable.hpp"
#include "rows.hpp"
#include "tables.hpp"

namespace repconc {
namespace {

// The forms with a mask do not start from undefined registers, of which some compilers warn.
constexpr __mmask16 kAll = 0xffff;
constexpr __mmask64 kAllBytes = ~__mmask64{0};

void from_halves(const std::uint16_t* halves, std::size_t dimension, float* floats) {
    std::size_t i = 0;
    for (; i + 16 <= dimension; i += 16)
        _mm512_storeu_ps(floats + i,
                         _mm512_maskz_cvtph_ps(kAll, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(halves + i))));
    from_halves_portable(halves + i, dimension - i, floats + i);
}

float product(const float* left, const float* right, std::size_t dimension) {
    __m512 sums[4] = {_mm512_setzero_ps(), _mm512_setzero_ps(), _mm512_setzero_ps(), _mm512_setzero_ps()};
    std::size_t i = 0;
    for (; i + 64 <= dimension; i += 64)
        for (std::size_t part = 0; part < 4; ++part)
            sums[part] =
                _mm512_fmadd_ps(_mm512_loadu_ps(left + i + 16 * part), _mm512_loadu_ps(right + i + 16 * part), sums[part]);
    alignas(64) float lanes[16];
    _mm512_store_ps(lanes, _mm512_add_ps(_mm512_add_ps(sums[0], sums[1]), _mm512_add_ps(sums[2], sums[3])));
    float total = product_portable(left + i, right + i, dimension - i);
    for (const float lane : lanes) total += lane;
    return total;
}

std::int32_t sum_of(__m512i lanes) {
    const __m256i halves = _mm256_add_epi32(_mm512_maskz_extracti64x4_epi64(0xff, lanes, 0),
                                            _mm512_maskz_extracti64x4_epi64(0xff, lanes, 1));
    const __m128i four = _mm_add_epi32(_mm256_castsi256_si128(halves), _mm256_extracti128_si256(halves, 1));
    const __m128i two = _mm_add_epi32(four, _mm_unpackhi_epi64(four, four));
    return _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32(two, 1)));
}

// For `count` queries together: the centroid is widened once for all of them. Each query has `parts` sums, so that an
// addition need not wait for the one before it.
template <std::size_t count, std::size_t parts>
void products_together(const std::int8_t* centroid, const std::int16_t* queries, std::size_t width, std::int32_t* products) {
    __m512i sums[count][parts];
    for (auto& own : sums)
        for (auto& sum : own) sum = _mm512_setzero_si512();
    for (std::size_t start = 0; start < width; start += 32 * parts)
        for (std::size_t part = 0; part < parts; ++part) {
            const std::size_t i = start + 32 * part;
            const __m512i wide = _mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(centroid + i)));
            for (std::size_t query = 0; query < count; ++query)
                sums[query][part] =
                    _mm512_dpwssd_epi32(sums[query][part], wide, _mm512_loadu_si512(queries + query * width + i));
        }
    for (std::size_t query = 0; query < count; ++query) {
        __m512i total = sums[query][0];
        for (std::size_t part = 1; part < parts; ++part) total = _mm512_add_epi32(total, sums[query][part]);
        products[query] = sum_of(total);
    }
}

void level_products(const std::int8_t* centroid, const std::int16_t* queries, std::size_t count, std::size_t width,
                    std::int32_t* products) {
    constexpr std::size_t kTogether = 8;
    std::size_t query = 0;
    for (; query + kTogether <= count; query += kTogether)
        products_together<kTogether, 1>(centroid, queries + query * width, width, products + query);
    for (; query < count; ++query) products_together<1, 4>(centroid, queries + query * width, width, products + query);
}

std::int32_t level_product(const std::int8_t* row, const std::int16_t* query, std::size_t width) {
    std::int32_t product;
    products_together<1, 4>(row, query, width, &product);
    return product;
}

struct Bytes {
    using Lanes = __m512i;
    static constexpr std::size_t kDimensions = 32, kSums = 16;
    static Lanes zero() { return _mm512_setzero_si512(); }
    static Lanes widen(const std::int8_t* bytes) {
        return _mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(bytes)));
    }
    static Lanes load(const std::int16_t* words) { return _mm512_loadu_si512(words); }
    static Lanes plus(Lanes left, Lanes right) { return _mm512_add_epi32(left, right); }
    static Lanes add(Lanes sums, Lanes left, Lanes right) { return _mm512_dpwssd_epi32(sums, left, right); }

    // Neighbours are put side by side and added, four times over, until a register holds a number of each.
    static void add_up(const Lanes* own, std::int32_t* totals) {
        Lanes fours[4];
        for (std::size_t part = 0; part < 4; ++part, own += 4) fours[part] = join64(join32(own[0], own[1]), join32(own[2], own[3]));
        _mm512_storeu_si512(totals, join128(join128(fours[0], fours[1]), join128(fours[2], fours[3])));
    }
    static Lanes join32(Lanes a, Lanes b) {
        return _mm512_add_epi32(_mm512_maskz_unpacklo_epi32(kAll, a, b), _mm512_maskz_unpackhi_epi32(kAll, a, b));
    }
    static Lanes join64(Lanes a, Lanes b) {
        return _mm512_add_epi32(_mm512_maskz_unpacklo_epi64(0xff, a, b), _mm512_maskz_unpackhi_epi64(0xff, a, b));
    }
    static Lanes join128(Lanes a, Lanes b) {
        return _mm512_add_epi32(_mm512_maskz_shuffle_i32x4(kAll, a, b, 0x88), _mm512_maskz_shuffle_i32x4(kAll, a, b, 0xdd));
    }
};

// 64 codes, and in which quarter of a table each one's entry stands.
struct Code {
    explicit Code(__m512i codes)
        : value(codes), upper(_mm512_movepi8_mask(codes)), second(_mm512_movepi8_mask(_mm512_add_epi8(codes, codes))) {}

    // The entries of a table of 256. A permute reads six bits of a code; the masks are the other two.
    __m512i look_up(const std::uint8_t* table) const {
        const __m512i first = _mm512_maskz_permutexvar_epi8(kAllBytes, value, _mm512_loadu_si512(table));
        const __m512i low = _mm512_mask_permutexvar_epi8(first, second, value, _mm512_loadu_si512(table + 64));
        const __m512i third = _mm512_maskz_permutexvar_epi8(kAllBytes, value, _mm512_loadu_si512(table + 128));
        const __m512i high = _mm512_mask_permutexvar_epi8(third, second, value, _mm512_loadu_si512(table + 192));
        return _mm512_mask_blend_epi8(upper, low, high);
    }

    __m512i value;
    __mmask64 upper, second;  // by the top bit, and by the one below it
};

// 64 sums of 16 bits. A lane of 16 bits holds two entries: low + 256 * high. Adding up whole lanes and the high halves is
// enough: the low halves are the difference, whatever ran over.
struct Sums {
    __m512i lanes = _mm512_setzero_si512();
    __m512i odd = _mm512_setzero_si512();  // documents 1, 3, 5, ...

    void add(__m512i entries) {
        lanes = _mm512_add_epi16(lanes, entries);
        odd = _mm512_add_epi16(odd, _mm512_srli_epi16(entries, 8));
    }

    // Bits of those at or above the threshold; only where there are any, all sums in the order of the documents.
    std::uint64_t above(std::uint16_t threshold, __mmask64 valid, std::uint16_t* sums) const {
        const __m512i even = _mm512_sub_epi16(lanes, _mm512_slli_epi16(odd, 8));
        const __m512i least = _mm512_set1_epi16(static_cast<short>(threshold));
        const std::uint64_t found = (_pdep_u64(_mm512_cmpge_epu16_mask(even, least), 0x5555555555555555) |
                                     _pdep_u64(_mm512_cmpge_epu16_mask(odd, least), 0xaaaaaaaaaaaaaaaa)) &
                                    valid;
        if (found) {
            const __m512i low = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8, 39, 7, 38, 6,
                                                 37, 5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
            const __m512i high = _mm512_add_epi16(low, _mm512_set1_epi16(16));
            _mm512_storeu_si512(sums, _mm512_permutex2var_epi16(even, low, odd));
            _mm512_storeu_si512(sums + 32, _mm512_permutex2var_epi16(even, high, odd));
        }
        return found;
    }
};

std::uint64_t block_sums(const std::uint8_t* codes, std::size_t M, std::size_t rows, const Rounded& query,
                         std::uint16_t threshold, std::uint16_t* sums) {
    const __mmask64 valid = rows == kBlock ? kAllBytes : (__mmask64{1} << rows) - 1;
    Sums totals;
    const auto add = [&](std::size_t m, std::size_t table) {
        totals.add(Code(_mm512_maskz_loadu_epi8(valid, codes + m * rows)).look_up(query.tables + table * kEntries));
    };
    for (std::size_t m = 0; m < M; ++m) add(m, m);
    for (std::size_t part = 0; part < query.more; ++part) add(query.again[part], M + part);
    return totals.above(threshold, valid, sums);
}

// All sums of a group stay in registers, for one query or for two, which share the codes and their masks. Entries are added
// in pairs, as bytes, before they are added to sums.
template <std::size_t count>
void sums_together(const std::uint8_t* codes, std::size_t stride, std::size_t M, Asked* queries, const std::uint8_t* ahead) {
    Sums totals[count][kGroup];
    const auto code_of = [&](std::size_t block, std::size_t m) {
        const std::size_t row = block * stride + m * kBlock;
        _mm_prefetch(reinterpret_cast<const char*>(ahead + row), _MM_HINT_T0);
        return Code(_mm512_loadu_si512(codes + row));
    };
    std::size_t m = 0;
    for (; m + 2 <= M; m += 2)
        for (std::size_t block = 0; block < kGroup; ++block) {
            const Code one = code_of(block, m), other = code_of(block, m + 1);
            for (std::size_t query = 0; query < count; ++query) {
                const std::uint8_t* table = queries[query].query.tables + m * kEntries;
                totals[query][block].add(_mm512_add_epi8(one.look_up(table), other.look_up(table + kEntries)));
            }
        }
    for (std::size_t block = 0; block < kGroup; ++block)
        for (std::size_t query = 0; query < count; ++query) {
            Asked& asked = queries[query];
            const auto add = [&](std::size_t byte, std::size_t table) {
                totals[query][block].add(code_of(block, byte).look_up(asked.query.tables + table * kEntries));
            };
            if (m < M) add(m, m);
            for (std::size_t part = 0; part < asked.query.more; ++part) add(asked.query.again[part], M + part);
            asked.above[block] = totals[query][block].above(asked.threshold, kAllBytes, asked.sums + block * kBlock);
        }
}

void group_sums(const std::uint8_t* codes, std::size_t stride, std::size_t M, Asked* queries, std::size_t count,
                const std::uint8_t* ahead) {
    std::size_t query = 0;
    for (; query + 2 <= count; query += 2) sums_together<2>(codes, stride, M, queries + query, ahead);
    if (query < count) sums_together<1>(codes, stride, M, queries + query, ahead);
}

}  // namespace

const Instructions kAvx512Vbmi = {
    "avx512vbmi", make_tables, row_products_of<Bytes, 4, level_product>, subtract_rows, find_bounds, round_tables, block_sums, group_sums, level_products, from_halves, product,
};

}  // namespace repconc
