#include "tools/rdmaquotad/node/ledger_watch.hpp"

#include "shm/ledger/ledger_file.hpp"
#include "shm/paths.hpp"

namespace rdmaquota {
namespace {

constexpr auto between_replacements = std::chrono::minutes(1);
constexpr auto between_reaps = std::chrono::seconds(1);
constexpr std::uint64_t most_for_reaping = 20'000'000;  // ns

std::uint32_t next_number() noexcept {
    static std::uint32_t last = 0;
    return ++last;
}

}  // namespace

void LedgerWatch::check() {
    auto now = read_ledger_head(path_);
    if (now && !now->sound && now->inode != 0 && now->inode == head_.inode && number_ != 0) {
        replace_damaged();
        now = read_ledger_head(path_);
    }
    if (!now) return;  // as it was
    const auto& head = *now;
    if (!head.sound) {
        if (head.inode != head_.inode) number_ = 0;
        if (head_.sound || missing_.empty()) missing_ = inspect_ledger_file(data_path(path_)).error();
        forget();
        head_.inode = head.inode;
        return;
    }
    const bool other = head.inode != head_.inode || !head_.sound;
    if (other) {
        forget();
        number_ = next_number();
    }
    missing_.clear();
    if (other || head.claims != head_.claims) wake();
    head_ = head;
}

void LedgerWatch::forget() {
    head_ = {};
    looks_left_ = 0;
    ledger_.reset();
    gates_.reset();
    figures_ = {};
    slots_.clear();
}

// Only the last one that was moved aside is kept, so that damaging it again and again does not fill the memory.
void LedgerWatch::replace_damaged() {
    const auto now = Clock::now();
    if (now < may_replace_) return;
    const auto aside = Ledger::replace_unusable(path_, otherwise_);
    if (aside && aside->empty()) return;  // it is whole again
    may_replace_ = now + between_replacements;
    if (!aside) return;
    if (!last_aside_.empty()) Ledger::remove(last_aside_);
    aside_ = last_aside_ = *aside;
}

void LedgerWatch::map() {
    if (ledger_ && (ledger_->lost() || !ledger_->in_place())) ledger_.reset();
    if (ledger_) return;
    auto ledger = Ledger::open(path_);
    if (ledger) ledger_.emplace(std::move(*ledger));
}

void LedgerWatch::reap() {
    map();
    if (ledger_) owners_reaped_ += ledger_->reap(most_for_reaping);
}

bool LedgerWatch::copy(LedgerCopy& scratch, LedgerCopy::Parts parts) const {
    return head_.sound && scratch.read(path_, parts) && scratch.inode() == head_.inode;
}

void LedgerWatch::look(LedgerCopy& scratch, const std::set<std::string>& devices, Clock::time_point now) {
    check();
    if (!head_.sound) return;
    map();
    if (now - reaped_ >= between_reaps) {
        reaped_ = now;
        reap();
    }
    if (!copy(scratch)) return;
    looked_ = now;
    head_.claims = scratch.claims();
    figures_ = figures_of(scratch);
    slots_ = slot_uses(scratch, devices);
    if (!gates_) gates_ = std::make_unique<GateCorrector>();
    if (ledger_) gates_corrected_ += gates_->pass(*ledger_, scratch, devices);
    looks_left_ = !slots_.empty() ? looks_after : looks_left_ == 0 ? 0 : looks_left_ - 1;
    if (!at_rest()) return;
    head_.events = events();
    ledger_.reset();
    gates_.reset();
}

}  // namespace rdmaquota
