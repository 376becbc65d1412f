// A query as whole numbers, small enough that sums of products with bytes fit into 32 bits.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace repconc {

constexpr std::size_t kWidestSum = (std::size_t{1} << 24) - 1;  // dimensions whose products with bytes still fit, one unit each

// What one of them stands for; NaN, and zeros, where the query holds what is no finite number.
inline double to_whole(const float* query, std::size_t D, std::int16_t* whole) {
    std::fill(whole, whole + D, std::int16_t{0});
    float largest = 0.0f;
    for (std::size_t i = 0; i < D; ++i) {
        if (!std::isfinite(query[i])) return std::numeric_limits<double>::quiet_NaN();
        largest = std::max(largest, std::abs(query[i]));
    }
    if (largest == 0.0f) return 0.0;
    const double scale = largest / std::min(std::floor(2147483647.0 / (128.0 * static_cast<double>(D))), 32767.0);
    for (std::size_t i = 0; i < D; ++i) {
        const double units = query[i] / scale;
        whole[i] = static_cast<std::int16_t>(units + (units < 0.0 ? -0.5 : 0.5));
    }
    return scale;
}

}  // namespace repconc
