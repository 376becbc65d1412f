// The highest values of a row: what a beam search keeps of all ways to make its partial codes longer.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace repconc {

// places: [count], the highest first; of equal values the first. count <= size
inline void highest(const float* values, std::size_t size, std::size_t count, std::int64_t* places) {
    constexpr std::size_t kTogether = 16;  // looked at as one: few of them hold anything that is kept
    std::vector<float> best(count, -std::numeric_limits<float>::infinity());
    std::fill(places, places + count, std::int64_t{0});
    for (std::size_t start = 0; start < size; start += kTogether) {
        const std::size_t stop = std::min(start + kTogether, size);
        int any = 0;  // no branches, so that it is one comparison
        for (std::size_t i = start; i < stop; ++i) any |= values[i] > best[count - 1];
        if (!any) continue;
        for (std::size_t i = start; i < stop; ++i) {
            if (!(values[i] > best[count - 1])) continue;
            std::size_t place = count - 1;
            for (; place > 0 && values[i] > best[place - 1]; --place) {
                best[place] = best[place - 1];
                places[place] = places[place - 1];
            }
            best[place] = values[i];
            places[place] = static_cast<std::int64_t>(i);
        }
    }
}

}  // namespace repconc
