// AVX2: no instruction looks up 256 entries, but `vpshufb` looks up 16, and gives zero where the index has its top bit set.
// A table is cut into 16 parts. For part h, code ^ (h << 4) is below 16 only for codes that belong to it; adding 0x70 with
// saturation keeps those below 0x80 and lifts all others above. The 16 results are joined by OR.

#include <immintrin.h>

#include "portable.hpp"
#include "rows.hpp"
#include "tables.hpp"

namespace repconc {
namespace {

struct Sums {
    __m256i even, odd;  // 16 sums of 16 bits each: documents 0, 2, ... and 1, 3, ... of 32
};

inline __m256i look_up(__m256i code, const std::uint8_t* table) {
    const __m256i lift = _mm256_set1_epi8(0x70);
    __m256i entry = _mm256_setzero_si256();
    for (int part = 0; part < 16; ++part) {
        const __m128i entries = _mm_loadu_si128(reinterpret_cast<const __m128i*>(table + 16 * part));
        const __m256i index = _mm256_adds_epu8(_mm256_xor_si256(code, _mm256_set1_epi8(static_cast<char>(part << 4))), lift);
        entry = _mm256_or_si256(entry, _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(entries), index));
    }
    return entry;
}

inline void add(Sums& sums, __m256i entry) {
    sums.even = _mm256_add_epi16(sums.even, _mm256_and_si256(entry, _mm256_set1_epi16(0x00ff)));
    sums.odd = _mm256_add_epi16(sums.odd, _mm256_srli_epi16(entry, 8));
}

inline void store(const Sums& sums, std::uint16_t* out) {
    alignas(32) std::uint16_t even[16], odd[16];
    _mm256_store_si256(reinterpret_cast<__m256i*>(even), sums.even);
    _mm256_store_si256(reinterpret_cast<__m256i*>(odd), sums.odd);
    for (int i = 0; i < 16; ++i) out[2 * i] = even[i], out[2 * i + 1] = odd[i];
}

// Whether any of the sums reaches the threshold: the maximum of both is the sum itself.
inline bool any_above(const Sums& sums, __m256i least) {
    const __m256i even = _mm256_cmpeq_epi16(_mm256_max_epu16(sums.even, least), sums.even);
    const __m256i odd = _mm256_cmpeq_epi16(_mm256_max_epu16(sums.odd, least), sums.odd);
    return !_mm256_testz_si256(_mm256_or_si256(even, odd), _mm256_set1_epi8(-1));
}

std::uint64_t block_sums(const std::uint8_t* codes, std::size_t M, std::size_t rows, const Rounded& query,
                         std::uint16_t threshold, std::uint16_t* sums) {
    if (rows < kBlock) return block_sums_portable(codes, M, rows, query, threshold, sums);
    Sums first{_mm256_setzero_si256(), _mm256_setzero_si256()}, second = first;
    const auto add_entries = [&](std::size_t m, std::size_t table) {
        const auto* own = reinterpret_cast<const __m256i*>(codes + m * kBlock);
        add(first, look_up(_mm256_loadu_si256(own), query.tables + table * kEntries));
        add(second, look_up(_mm256_loadu_si256(own + 1), query.tables + table * kEntries));
    };
    for (std::size_t m = 0; m < M; ++m) add_entries(m, m);
    for (std::size_t part = 0; part < query.more; ++part) add_entries(query.again[part], M + part);
    const __m256i least = _mm256_set1_epi16(static_cast<short>(threshold));
    if (!any_above(first, least) && !any_above(second, least)) return 0;
    store(first, sums);
    store(second, sums + 32);
    std::uint64_t above = 0;
    for (std::size_t row = 0; row < kBlock; ++row) above |= static_cast<std::uint64_t>(sums[row] >= threshold) << row;
    return above;
}

void from_halves(const std::uint16_t* halves, std::size_t dimension, float* floats) {
    std::size_t i = 0;
    for (; i + 8 <= dimension; i += 8)
        _mm256_storeu_ps(floats + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(halves + i))));
    from_halves_portable(halves + i, dimension - i, floats + i);
}

float product(const float* left, const float* right, std::size_t dimension) {
    __m256 sums[4] = {_mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps()};
    std::size_t i = 0;
    for (; i + 32 <= dimension; i += 32)
        for (std::size_t part = 0; part < 4; ++part)
            sums[part] =
                _mm256_fmadd_ps(_mm256_loadu_ps(left + i + 8 * part), _mm256_loadu_ps(right + i + 8 * part), sums[part]);
    alignas(32) float lanes[8];
    _mm256_store_ps(lanes, _mm256_add_ps(_mm256_add_ps(sums[0], sums[1]), _mm256_add_ps(sums[2], sums[3])));
    float total = product_portable(left + i, right + i, dimension - i);
    for (const float lane : lanes) total += lane;
    return total;
}

std::int32_t level_product(const std::int8_t* centroid, const std::int16_t* query, std::size_t width) {
    __m256i sums[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
    for (std::size_t i = 0; i < width; i += 32)
        for (std::size_t part = 0; part < 2; ++part) {
            const auto* bytes = reinterpret_cast<const __m128i*>(centroid + i + 16 * part);
            const auto* words = reinterpret_cast<const __m256i*>(query + i + 16 * part);
            const __m256i pairs = _mm256_madd_epi16(_mm256_cvtepi8_epi16(_mm_loadu_si128(bytes)), _mm256_loadu_si256(words));
            sums[part] = _mm256_add_epi32(sums[part], pairs);
        }
    alignas(32) std::int32_t lanes[8];
    _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), _mm256_add_epi32(sums[0], sums[1]));
    std::int32_t total = 0;
    for (const std::int32_t lane : lanes) total += lane;
    return total;
}

struct Bytes {
    using Lanes = __m256i;
    static constexpr std::size_t kDimensions = 16, kSums = 8;
    static Lanes zero() { return _mm256_setzero_si256(); }
    static Lanes widen(const std::int8_t* bytes) {
        return _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes)));
    }
    static Lanes load(const std::int16_t* words) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(words)); }
    static Lanes plus(Lanes left, Lanes right) { return _mm256_add_epi32(left, right); }
    static Lanes add(Lanes sums, Lanes left, Lanes right) { return _mm256_add_epi32(sums, _mm256_madd_epi16(left, right)); }
    static void add_up(const Lanes* own, std::int32_t* totals) {
        Lanes fours[2];  // each half of a register holds a part of four sums
        for (std::size_t part = 0; part < 2; ++part, own += 4)
            fours[part] = _mm256_hadd_epi32(_mm256_hadd_epi32(own[0], own[1]), _mm256_hadd_epi32(own[2], own[3]));
        const Lanes low = _mm256_permute2x128_si256(fours[0], fours[1], 0x20);
        const Lanes high = _mm256_permute2x128_si256(fours[0], fours[1], 0x31);
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(totals), _mm256_add_epi32(low, high));
    }
};

}  // namespace

const Instructions kAvx2 = {
    "avx2", make_tables, row_products_of<Bytes, 2, level_product>, subtract_rows, find_bounds, round_tables, block_sums, group_of_blocks<block_sums>,
    products_one_by_one<level_product>, from_halves, product,
};

}  // namespace repconc
