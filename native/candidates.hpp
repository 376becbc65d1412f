// The best of one query while codes are scanned: what rounded sums say of exact scores, and which documents may still be among
// the best k.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <stdexcept>
#include <vector>

#include "instructions.hpp"
#include "rounding.hpp"
#include "scan.hpp"

namespace repconc {

// A query's tables as bytes, and what their sums say of exact scores.
class RoundedTables {
  public:
    // first: of M, those that are rounded; gain: the largest that scores are multiplied by.
    RoundedTables(const float* tables, std::size_t M, std::size_t first, float gain) {
        float least[kWidest], largest[kWidest];
        const bool finite = instructions().find_bounds(tables, M, least, largest);
        double size = 0.0;
        for (std::size_t m = 0; m < M; ++m) size += std::max(std::abs(double{least[m]}), std::abs(double{largest[m]}));
        // Else sums would tie at infinity.
        if (!finite || !(size * gain <= std::numeric_limits<float>::max())) throw std::overflow_error("Scores would be no finite numbers.");
        std::vector<double> widths(first);
        for (std::size_t m = 0; m < first; ++m) widths[m] = double{largest[m]} - double{least[m]}, zero_ += least[m];
        rounding_ = choose_rounding(widths);
        bytes_.resize(rounding_.tables(first) * kEntries);
        round(tables, first, least, rounding_, bytes_.data());
        // Each entry is off by half a step at most; and float32 sums and gains round, by less than (M + 1) * eps * size, on
        // both sides.
        const double summing = 2.0 * static_cast<double>(M + 1) * std::numeric_limits<float>::epsilon() * size * rounding_.steps;
        margin_ = static_cast<double>(first) / 2.0 + summing + 1.0;
    }

    Rounded view() const { return {bytes_.data(), rounding_.again.data(), rounding_.again.size()}; }

    // What a document of this gain scores, by its rounded sum; only about.
    float about(std::uint16_t sum, float gain) const {
        constexpr double kMost = std::numeric_limits<float>::max();
        return static_cast<float>(std::clamp(gain * (zero_ + sum / rounding_.steps), -kMost, kMost));
    }

    // What the rounded sum of a document of this gain is at least, if its exact score is not below this one.
    std::uint16_t least_sum(float score, float gain) const {
        // A product that is too small for a normal number rounds by an absolute amount.
        const double least = (static_cast<double>(score) - std::numeric_limits<float>::denorm_min()) / gain;
        const double sum = std::ceil((least - zero_) * rounding_.steps - margin_);
        return sum > 0.0 ? static_cast<std::uint16_t>(std::min(sum, 65535.0)) : std::uint16_t{0};
    }

  private:
    Rounding rounding_;
    double zero_ = 0.0, margin_;
    std::vector<std::uint8_t> bytes_;
};

// A document that may be among the best, and where its code lies: the bytes of a code are `stride` apart.
struct Candidate {
    std::int64_t position;
    const std::uint8_t* code;
    std::uint16_t sum, stride, kind;
    float about = 0.0f;  // its score, by the rounded sum
    float score = std::numeric_limits<float>::quiet_NaN();  // exact by the bytes that are scanned, once it was asked for
};

// The best of one query. From time to time those with the best rounded sums are scored exactly; whatever is then certain to score
// less than all of them is dropped, and need not be taken any more.
class Candidates {
  public:
    Candidates(const float* tables, const Codes& codes, const RoundedTables& rounded, const std::vector<float>& gains, Wanted wanted)
        : tables_(tables), M_(codes.M), first_(codes.first), rounded_(&rounded), gains_(gains.data()), thresholds_(gains.size()),
          wanted_(wanted.k), k_(first_ < M_ ? std::max(wanted.k, wanted.depth) : wanted.k), limit_(std::max<std::size_t>(4 * k_, 256)) {}

    // The rounded sum that a document of some class must reach.
    std::uint16_t threshold(std::size_t kind) const { return thresholds_[kind]; }

    // The lowest of the classes first .. last.
    std::uint16_t threshold(std::size_t first, std::size_t last) const {
        return *std::min_element(thresholds_.begin() + static_cast<std::ptrdiff_t>(first),
                                 thresholds_.begin() + static_cast<std::ptrdiff_t>(last) + 1);
    }

    void add(const Candidate& one) {
        kept_.push_back(one);
        kept_.back().about = rounded_->about(one.sum, gains_[one.kind]);
        if (kept_.size() >= limit_) compact();
    }

    void join(const Candidates& others) { kept_.insert(kept_.end(), others.kept_.begin(), others.kept_.end()); }

    // The best by exact scores, and all that tie with the last of them.
    Found finish() {
        compact();
        for (Candidate& one : kept_) score(one);
        keep_best(k_);
        if (first_ < M_) {
            for (Candidate& one : kept_) one.score = summed(one, M_);
            keep_best(wanted_);
        }
        Found found;
        for (const Candidate& one : kept_) found.positions.push_back(one.position), found.scores.push_back(one.score);
        return found;
    }

  private:
    float score(Candidate& one) const { return std::isnan(one.score) ? one.score = summed(one, first_) : one.score; }

    // For m = 0 .. count - 1 in this order, as on every other path.
    float summed(const Candidate& one, std::size_t count) const {
        float total = 0.0f;
        for (std::size_t m = 0; m < count; ++m) total += tables_[m * kEntries + one.code[m * one.stride]];
        return gains_[one.kind] * total;
    }

    // Those with the highest scores, and all that tie with the last of them.
    void keep_best(std::size_t count) {
        if (kept_.size() <= count) return;
        std::vector<float> scores;
        for (const Candidate& one : kept_) scores.push_back(one.score);
        const auto last = scores.begin() + static_cast<std::ptrdiff_t>(count - 1);
        std::nth_element(scores.begin(), last, scores.end(), std::greater<>());
        std::erase_if(kept_, [least = *last](const Candidate& one) { return one.score < least; });
    }

    void compact() {
        if (kept_.size() <= k_) return;
        const auto kth = kept_.begin() + static_cast<std::ptrdiff_t>(k_);
        std::nth_element(kept_.begin(), kth - 1, kept_.end(), [](auto& a, auto& b) { return a.about > b.about; });
        float least = std::numeric_limits<float>::infinity();
        for (auto one = kept_.begin(); one != kth; ++one) least = std::min(least, score(*one));
        for (std::size_t kind = 0; kind < thresholds_.size(); ++kind)
            thresholds_[kind] = std::max(thresholds_[kind], rounded_->least_sum(least, gains_[kind]));
        const auto hopeless = [this](auto& one) { return one.sum < thresholds_[one.kind]; };
        kept_.erase(std::remove_if(kept_.begin(), kept_.end(), hopeless), kept_.end());
        limit_ = std::max(limit_, 2 * kept_.size());  // ties beyond number: do not sort them again and again
    }

    const float* tables_;
    std::size_t M_, first_;
    const RoundedTables* rounded_;
    const float* gains_;
    std::vector<std::uint16_t> thresholds_;
    std::size_t wanted_, k_, limit_;  // k: how many are looked for by the bytes that are scanned
    std::vector<Candidate> kept_;
};

}  // namespace repconc
