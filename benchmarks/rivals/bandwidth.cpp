// The plainest reader of memory: add up all bytes, 256 at a time. What a scan cannot be faster than.

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

extern "C" std::uint64_t sum_of_words(const std::uint8_t* bytes, std::size_t count) {
    __m512i sums[4] = {_mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512()};
    for (std::size_t i = 0; i + 256 <= count; i += 256)
        for (std::size_t part = 0; part < 4; ++part)
            sums[part] = _mm512_add_epi64(sums[part], _mm512_loadu_si512(bytes + i + 64 * part));
    const __m512i all = _mm512_add_epi64(_mm512_add_epi64(sums[0], sums[1]), _mm512_add_epi64(sums[2], sums[3]));
    return static_cast<std::uint64_t>(_mm512_reduce_add_epi64(all));
}
