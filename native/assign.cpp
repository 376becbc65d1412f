// The closeness of a document to a centroid is a sum of table entries, as its score is; so the scan that searches also
// assigns. Rounded sums leave a few lists for each document, and those are compared by their vectors.

#include "assign.hpp"

#include <algorithm>
#include <atomic>
#include <limits>
#include <stdexcept>
#include <vector>

#include "instructions.hpp"
#include "threads.hpp"

namespace repconc {
namespace {

constexpr std::size_t kGroupRows = kGroup * kBlock;
constexpr std::size_t kPiece = 16 * kGroupRows;  // documents that go through all lists while they are in the cache

struct Choice {
    std::uint32_t list;
    float closeness;  // in steps, rounded
};

// Some documents on their way through all lists.
class Piece {
  public:
    Piece(const Sizes& sizes, const std::uint8_t* codes, std::size_t n) : M_(sizes.M), n_(n) {
        blocks_.resize((n + kGroupRows - 1) / kGroupRows * kGroupRows * M_);  // whole groups; sums beyond n mean nothing
        for (std::size_t row = 0; row < n; ++row)
            for (std::size_t m = 0; m < M_; ++m)
                blocks_[(row / kBlock * M_ + m) * kBlock + row % kBlock] = codes[row * M_ + m];
        bar_.assign(n, -std::numeric_limits<float>::infinity());
        choices_.resize(n);
    }

    // Keep the list for all documents that it could be the nearest of.
    void compare(std::size_t list, const std::uint8_t* tables, float lacking) {
        Asked asked;
        asked.query = {tables}, asked.threshold = 0;
        const std::uint16_t* sums = asked.sums;
        for (std::size_t start = 0; start < n_; start += kGroupRows) {
            const std::uint8_t* here = blocks_.data() + start * M_;
            instructions().group_sums(here, M_, &asked, 1, here);
            const std::size_t rows = std::min(kGroupRows, n_ - start);
            int any = 0;
            for (std::size_t row = 0; row < rows; ++row)
                any |= static_cast<float>(sums[row]) + lacking >= bar_[start + row];
            if (!any) continue;
            for (std::size_t row = 0; row < rows; ++row) {
                const float closeness = static_cast<float>(sums[row]) + lacking;
                if (closeness < bar_[start + row]) continue;
                choices_[start + row].push_back({static_cast<std::uint32_t>(list), closeness});
                bar_[start + row] = std::max(bar_[start + row], closeness - margin());
            }
        }
    }

    // Lists that could be the nearest, now that all were seen.
    const std::vector<Choice>& choices(std::size_t row) {
        auto& own = choices_[row];
        own.erase(std::remove_if(own.begin(), own.end(), [&](auto& one) { return one.closeness < bar_[row]; }), own.end());
        return own;
    }

  private:
    float margin() const { return static_cast<float>(M_ + 2); }  // half a step an entry, on both sides

    std::size_t M_, n_;
    std::vector<std::uint8_t> blocks_;
    std::vector<float> bar_;  // below it a list cannot be the nearest
    std::vector<std::vector<Choice>> choices_;
};

}  // namespace

void prepare(const Sizes& sizes, const float* centroids, const float* codebooks, std::uint8_t* tables, float* lacking) {
    const std::size_t D = sizes.M * sizes.d, size = sizes.M * kEntries;
    std::vector<float> exact(size), least(sizes.L * sizes.M), largest(sizes.M);
    const auto tables_of = [&](std::size_t list) {
        instructions().make_tables(codebooks, centroids + list * D, sizes.M, sizes.d, sizes.K, exact.data());
    };
    std::vector<double> exact_lacking(sizes.L);
    double widest = 0.0;
    for (std::size_t list = 0; list < sizes.L; ++list) {
        tables_of(list);
        float* const low = least.data() + list * sizes.M;
        if (!instructions().find_bounds(exact.data(), sizes.M, low, largest.data()))
            throw std::overflow_error("A product of centroids and codewords is no finite number.");
        for (std::size_t m = 0; m < sizes.M; ++m) widest = std::max(widest, static_cast<double>(largest[m]) - low[m]);
    }
    const double steps = widest > 0.0 ? kHighest / widest : 0.0;  // in one unit; without any, centroids differ in nothing but length
    for (std::size_t list = 0; list < sizes.L; ++list) {
        tables_of(list);
        const float* const low = least.data() + list * sizes.M;
        instructions().round_tables(exact.data(), sizes.M, low, steps, tables + list * size);
        double rest = 0.0;
        for (std::size_t m = 0; m < sizes.M; ++m) rest += low[m];
        for (std::size_t i = list * D; i < (list + 1) * D; ++i) rest -= static_cast<double>(centroids[i]) * centroids[i] / 2.0;
        exact_lacking[list] = rest * steps;
    }
    // Only differences count; small numbers keep their fractions as floats.
    const double most = *std::max_element(exact_lacking.begin(), exact_lacking.end());
    for (std::size_t list = 0; list < sizes.L; ++list) lacking[list] = static_cast<float>(exact_lacking[list] - most);
}

void nearest(const Sizes& sizes, const std::uint8_t* codes, std::size_t n, const std::uint8_t* tables, const float* lacking,
             const float* centroids, const float* words, std::size_t threads, std::int64_t* owners, float* distances) {
    const std::size_t D = sizes.M * sizes.d;
    std::vector<float> half_norms(sizes.L);
    for (std::size_t list = 0; list < sizes.L; ++list)
        half_norms[list] = instructions().product(centroids + list * D, centroids + list * D, D) / 2.0f;

    const auto assign = [&](std::size_t start, std::size_t count) {
        Piece piece(sizes, codes + start * sizes.M, count);
        for (std::size_t list = 0; list < sizes.L; ++list)
            piece.compare(list, tables + list * sizes.M * kEntries, lacking[list]);
        std::vector<float> vector(D);
        for (std::size_t row = 0; row < count; ++row) {
            for (std::size_t m = 0; m < sizes.M; ++m) {
                const float* word = words + (m * sizes.K + codes[(start + row) * sizes.M + m]) * sizes.d;
                std::copy(word, word + sizes.d, vector.begin() + static_cast<std::ptrdiff_t>(m * sizes.d));
            }
            float best = -std::numeric_limits<float>::infinity();
            for (const Choice& one : piece.choices(row)) {  // in the order of lists: of two that are equal the lower number
                const float closeness =
                    instructions().product(vector.data(), centroids + one.list * D, D) - half_norms[one.list];
                if (closeness > best || best == -std::numeric_limits<float>::infinity())
                    best = closeness, owners[start + row] = one.list;
            }
            distances[start + row] = instructions().product(vector.data(), vector.data(), D) - 2.0f * best;
        }
    };
    std::atomic<std::size_t> next{0};
    const auto work = [&](std::size_t) {
        for (std::size_t start; (start = next.fetch_add(kPiece)) < n;) assign(start, std::min(kPiece, n - start));
    };
    on_threads(std::clamp<std::size_t>(threads, 1, n / kPiece + 1), work);
}

}  // namespace repconc
