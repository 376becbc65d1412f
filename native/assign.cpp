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
    void compare(std::size_t list, const Rounded& tables, float lacking) {
        Asked asked;
        asked.query = tables, asked.threshold = 0;
        const std::uint16_t* sums = asked.sums;
        for (std::size_t start = 0; start < n_; start += kGroupRows) {
            const std::uint8_t* here = blocks_.data() + start * M_;
            instructions().group_sums(here, M_ * kBlock, M_, &asked, 1, here);
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

Assigner::Assigner(const Sizes& all, const float* centroids, const float* codebooks)
    : sizes(all), centroids_(centroids, centroids + all.L * all.M * all.d), words_(all.M * all.K * all.d), half_norms_(all.L),
      lacking_(all.L) {
    const auto [M, d, K, L] = sizes;
    for (std::size_t m = 0; m < M; ++m)
        for (std::size_t i = 0; i < d; ++i)
            for (std::size_t j = 0; j < K; ++j) words_[(m * K + j) * d + i] = codebooks[(m * d + i) * K + j];
    std::vector<float> exact(M * kEntries), least(L * M), largest(M);
    const auto make_tables = [&, M = M, d = d, K = K](std::size_t list) {
        instructions().make_tables(codebooks, centroids + list * M * d, M, d, K, exact.data());
    };
    std::vector<double> widths(M);
    for (std::size_t list = 0; list < L; ++list) {
        make_tables(list);
        float* const low = least.data() + list * M;
        if (!instructions().find_bounds(exact.data(), M, low, largest.data()))
            throw std::overflow_error("A product of centroids and codewords is no finite number.");
        for (std::size_t m = 0; m < M; ++m) widths[m] = std::max(widths[m], static_cast<double>(largest[m]) - low[m]);
    }
    rounding_ = choose_rounding(widths);
    const std::size_t size = rounding_.tables(M) * kEntries;
    tables_.resize(L * size);
    std::vector<double> lacking(L);
    for (std::size_t list = 0; list < L; ++list) {
        make_tables(list);
        const float* const low = least.data() + list * M;
        round(exact.data(), M, low, rounding_, tables_.data() + list * size);
        const float* const centroid = centroids + list * M * d;
        half_norms_[list] = instructions().product(centroid, centroid, M * d) / 2.0f;
        double rest = 0.0;
        for (std::size_t m = 0; m < M; ++m) rest += low[m];
        for (std::size_t i = 0; i < M * d; ++i) rest -= static_cast<double>(centroid[i]) * centroid[i] / 2.0;
        lacking[list] = rest * rounding_.steps;
    }
    // Only differences count; small numbers keep their fractions as floats.
    const double most = *std::max_element(lacking.begin(), lacking.end());
    for (std::size_t list = 0; list < L; ++list) lacking_[list] = static_cast<float>(lacking[list] - most);
}

void Assigner::assign(const std::uint8_t* codes, std::size_t n, std::int64_t* owners, float* distances) const {
    const auto [M, d, K, L] = sizes;
    const std::size_t D = M * d, size = rounding_.tables(M) * kEntries;
    Piece piece(sizes, codes, n);
    for (std::size_t list = 0; list < L; ++list)
        piece.compare(list, {tables_.data() + list * size, rounding_.again.data(), rounding_.again.size()}, lacking_[list]);
    std::vector<float> vector(D);
    for (std::size_t row = 0; row < n; ++row) {
        for (std::size_t m = 0; m < M; ++m) {
            const float* word = words_.data() + (m * K + codes[row * M + m]) * d;
            std::copy(word, word + d, vector.begin() + static_cast<std::ptrdiff_t>(m * d));
        }
        float best = -std::numeric_limits<float>::infinity();
        for (const Choice& one : piece.choices(row)) {  // in the order of lists: of two that are equal the lower number
            const float closeness =
                instructions().product(vector.data(), centroids_.data() + one.list * D, D) - half_norms_[one.list];
            if (closeness > best || best == -std::numeric_limits<float>::infinity()) best = closeness, owners[row] = one.list;
        }
        distances[row] = instructions().product(vector.data(), vector.data(), D) - 2.0f * best;
    }
}

void Assigner::nearest(const std::uint8_t* codes, std::size_t n, std::size_t threads, std::int64_t* owners,
                       float* distances) const {
    std::atomic<std::size_t> next{0};
    const auto work = [&](std::size_t) {
        for (std::size_t start; (start = next.fetch_add(kPiece)) < n;)
            assign(codes + start * sizes.M, std::min(kPiece, n - start), owners + start, distances + start);
    };
    on_threads(std::clamp<std::size_t>(threads, 1, n / kPiece + 1), work);
}

}  // namespace repconc
