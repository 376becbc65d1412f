// Centroids are half floats; a copy of one byte a dimension is half as long to read. Its products are off by a known bound,
// so that it is enough to compute those exactly that could be among the best.

#include "lists.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <stdexcept>
#include <vector>

#include "instructions.hpp"
#include "whole.hpp"

namespace repconc {
namespace {

constexpr std::size_t kAhead = 8;  // centroids that are fetched from memory before they are needed

// Ask for a row before it is needed.
void fetch(const void* row, std::size_t bytes) {
    constexpr std::size_t kCacheLine = 64;
    for (std::size_t i = 0; i < bytes; i += kCacheLine) __builtin_prefetch(static_cast<const char*>(row) + i);
}

double norm_of(const float* row, std::size_t D) {
    double total = 0.0;
    for (std::size_t i = 0; i < D; ++i) total += static_cast<double>(row[i]) * row[i];
    return std::sqrt(total);
}

// Of a query as whole numbers: what one stands for, and the norms of what was rounded off and of the query.
struct Whole {
    double scale, error, norm;
};

Whole to_levels(const float* query, std::size_t D, std::int16_t* levels) {
    const double scale = to_whole(query, D, levels);
    double rest = 0.0;
    for (std::size_t i = 0; i < D; ++i) {
        const double off = query[i] - scale * levels[i];
        rest += off * off;
    }
    return {scale, std::sqrt(rest), norm_of(query, D)};
}

float or_least(float value) { return std::isnan(value) ? -std::numeric_limits<float>::infinity() : value; }

struct Scored {
    float score;
    std::int64_t list;
};

// products: of the levels, one every `stride`.
void choose(const Centroids& centroids, const float* query, const Whole& whole, const std::int32_t* products, std::size_t stride,
            std::size_t count, std::int64_t* best) {
    // Bounds of the products, in which every rounding is counted.
    std::vector<float> lowest(centroids.L), highest(centroids.L), best_of(count);
    const double rounding = static_cast<double>(centroids.D + 8) * std::numeric_limits<float>::epsilon();
    const auto scale = static_cast<float>(whole.scale), by_error = static_cast<float>((whole.norm + whole.error) * 1.001),
               by_norm = static_cast<float>((whole.norm * rounding + whole.error) * 1.001);
    for (std::size_t list = 0; list < centroids.L; ++list) {
        const Level& about = centroids.about[list];
        const float product = static_cast<float>(products[list * stride]) * about.scale * scale;
        const float bound = by_error * about.error + by_norm * about.norm;
        lowest[list] = product - bound;
        highest[list] = product + bound;
    }
    for (float& value : lowest) value = or_least(value);
    std::partial_sort_copy(lowest.begin(), lowest.end(), best_of.begin(), best_of.end(), std::greater<>());
    const float least = best_of.back();
    std::vector<Scored> kept;
    for (std::size_t list = 0; list < centroids.L; ++list)
        if (!(highest[list] < least)) kept.push_back({0.0f, static_cast<std::int64_t>(list)});
    if (kept.size() < count) throw std::invalid_argument("The levels are not those of the centroids.");
    std::vector<float> row(centroids.D);
    const auto halves_of = [&](std::size_t place) {
        return centroids.halves + static_cast<std::size_t>(kept[std::min(place, kept.size() - 1)].list) * centroids.D;
    };
    for (std::size_t place = 0; place < kept.size(); ++place) {
        fetch(halves_of(place + 2), centroids.D * sizeof(std::uint16_t));
        instructions().from_halves(halves_of(place), centroids.D, row.data());
        kept[place].score = or_least(instructions().product(row.data(), query, centroids.D));
    }
    std::partial_sort(kept.begin(), kept.begin() + static_cast<std::ptrdiff_t>(count), kept.end(),
                      [](auto& a, auto& b) { return a.score != b.score ? a.score > b.score : a.list < b.list; });
    for (std::size_t i = 0; i < count; ++i) best[i] = kept[i].list;
}

}  // namespace

std::size_t level_width(std::size_t D) { return (D + kLevelRow - 1) / kLevelRow * kLevelRow; }

void make_levels(const std::uint16_t* halves, std::size_t L, std::size_t D, std::int8_t* levels, Level* about) {
    const std::size_t width = level_width(D);
    std::vector<float> row(D), rest(D);
    std::fill(levels, levels + L * width, std::int8_t{0});
    for (std::size_t list = 0; list < L; ++list, levels += width) {
        instructions().from_halves(halves + list * D, D, row.data());
        float largest = 0.0f;
        for (const float value : row) largest = std::max(largest, std::abs(value));
        const float scale = largest / 127.0f;
        for (std::size_t i = 0; i < D; ++i) {
            if (scale > 0.0f) levels[i] = static_cast<std::int8_t>(std::nearbyint(row[i] / scale));
            rest[i] = row[i] - scale * levels[i];
        }
        constexpr double kUp = 1.0 + 1e-6;  // float would round down
        about[list] = {scale, static_cast<float>(norm_of(rest.data(), D) * kUp), static_cast<float>(norm_of(row.data(), D) * kUp)};
    }
}

void best_lists(const Centroids& centroids, const float* queries, std::size_t B, std::size_t count, std::int64_t* best) {
    const std::size_t width = centroids.width;
    std::vector<std::int16_t> levels(B * width);
    std::vector<Whole> whole;
    for (std::size_t query = 0; query < B; ++query)
        whole.push_back(to_levels(queries + query * centroids.D, centroids.D, levels.data() + query * width));
    std::unique_ptr<std::int32_t[]> products(new std::int32_t[centroids.L * B]);
    for (std::size_t list = 0; list < centroids.L; ++list) {  // a centroid is read once for all queries
        fetch(centroids.levels + std::min(list + kAhead, centroids.L - 1) * width, width);
        instructions().level_products(centroids.levels + list * width, levels.data(), B, width, products.get() + list * B);
    }
    for (std::size_t query = 0; query < B; ++query)
        choose(centroids, queries + query * centroids.D, whole[query], products.get() + query, B, count, best + query * count);
}

}  // namespace repconc
