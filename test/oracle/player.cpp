#include "player.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/core.h>
#include <unistd.h>

#include "makers.hpp"

namespace oracle {
namespace {

constexpr std::size_t comfortable = 60;  // objects; beyond it, destroying is more likely

const Made& any_maker(Random& random) {
    const auto table = random.one_in(8) ? special_makers() : makers();
    unsigned sum = 0;
    for (const auto& maker : table) sum += maker.weight;
    auto n = random.below(sum);
    for (const auto& maker : table) {
        if (n < maker.weight) return maker;
        n -= maker.weight;
    }
    return table.front();
}

}  // namespace

std::string Player::story() const {
    std::string text;
    for (const auto& line : story_) text += "    # " + line + "\n";
    return text;
}

void Player::fault(const std::string& text) {
    if (wrong_.empty()) wrong_ = text;
}

// Notes how a call ended, and whether that is right: a denial needs a limit that has no room, and
// success a room in every limit. True when the call was done.
bool Player::judge(const std::string& name, const std::string& text, const Tally& more, int error, bool done) {
    story_.push_back(fmt::format("{}: {}", text,
                                 done                     ? "done"
                                 : strerrorname_np(error) ? strerrorname_np(error)
                                                          : "?"));
    if (story_.size() > 12) story_.pop_front();
    auto& outcome = outcomes_[name];
    ++(done ? outcome.done : error == EDQUOT ? outcome.denied : outcome.refused);
    if (!alone_) return done;
    const bool full = accounting_.exceeds(pool_.expected(), more);
    if (done && full) fault(text + " was allowed beyond the limits" + accounting_.limits());
    if (!done && error == EDQUOT && !full) fault(text + " was denied with room left:" + accounting_.limits());
    return done;
}

void Player::make() {
    const auto& maker = any_maker(random_);
    Attempt attempt{pool_, random_, device_};
    if (!maker.make(attempt)) return;
    const bool done = attempt.made.handle != nullptr;
    if (judge(maker.name, attempt.text, attempt.made.cost, attempt.error, done))
        pool_.add(std::make_shared<Object>(attempt.made));
}

// Also what others still need, which the kernel refuses.
void Player::end() {
    const auto taken = pool_.take(random_);
    if (!taken) return;
    errno = 0;
    const int status = taken->end(taken->handle);
    const auto text = fmt::format("destroy an object of kind {}", static_cast<int>(taken->kind));
    if (!judge("destroy", text, {}, status > 0 ? status : errno, status == 0)) pool_.add(taken.object());
}

// rxe's queues are mapped from the device's open file, which therefore lives, with everything in it,
// until the process ends, when a program closes the device without destroying them; `clean` does.
void Player::close_context(bool clean) {
    const auto taken = pool_.take_context(random_);
    if (taken.empty()) return;
    std::vector<int> descriptors;
    Tally all;
    bool mapped = false;
    for (const auto kind : {Kind::qp, Kind::srq, Kind::cq})
        for (const auto& object : taken)
            if (object->kind == kind) mapped |= !clean || object->end(object->handle) != 0;
    for (const auto& object : taken) {
        all.add(object->cost);
        if (object->kind == Kind::channel) descriptors.push_back(static_cast<ibv_comp_channel*>(object->handle)->fd);
    }
    const int status = ibv_close_device(taken.front()->verbs);
    if (mapped) pool_.keep(all);
    judge("close",
          fmt::format("close a device with {} objects{}", taken.size() - 1, mapped ? ", queues among them" : ""), {},
          EIO, status == 0);
    for (const int fd : descriptors) close(fd);
}

void Player::close_all() {
    while (pool_.count(Kind::context) > 0) close_context(true);
}

// The end of a change of `resource` to `amount`, which only success makes true.
void Player::change(const Pin& pin, const std::string& name, const std::string& text, Resource resource,
                    std::int64_t amount, int status, int error) {
    // For the model, the object leaves with its old cost and comes back with the new one.
    const auto before = pin->cost.of(resource);
    auto more = Tally{};
    more.set(resource, std::max<std::int64_t>(amount - before, 0));
    pool_.add(pin.object());
    if (judge(name, text, more, error, status == 0)) pin->cost.set(resource, amount);
}

void Player::resize_cq() {
    const auto kind = Kind::cq;
    const auto cq = pool_.take(random_, &kind);
    if (!cq) return;
    constexpr int entries[] = {1, 10, 50, 300, 2000, 0, -1, 1 << 30};
    const int wanted = random_.any(entries);
    errno = 0;
    const int status = ibv_resize_cq(cq.as<ibv_cq>(), wanted);
    change(cq, "resize_cq", fmt::format("resize a CQ to {}", wanted), Resource::cqe, wanted, status, status);
}

void Player::modify_srq() {
    const auto kind = Kind::srq;
    const auto srq = pool_.take(random_, &kind);
    if (!srq) return;
    constexpr unsigned requests[] = {1, 10, 200, 2000, 0, 1U << 30};
    ibv_srq_attr attr{};
    attr.max_wr = random_.any(requests);
    const bool resizes = !random_.one_in(4);
    const int status = ibv_modify_srq(srq.as<ibv_srq>(), &attr, resizes ? IBV_SRQ_MAX_WR : IBV_SRQ_LIMIT);
    const auto amount = resizes ? attr.max_wr : srq->cost.of(Resource::srq_wr);
    change(srq, "modify_srq", fmt::format("modify an SRQ{} {}", resizes ? " to" : "'s limit, not to", attr.max_wr),
           Resource::srq_wr, amount, status, status > 0 ? status : errno);
}

void Player::rereg_mr() {
    const auto kind = Kind::mr;
    const auto mr = pool_.take(random_, &kind);
    if (!mr) return;
    const auto pd = pool_.pick(Kind::pd, random_, mr->verbs);
    int flags = static_cast<int>(random_.below(8));
    if (!pd) flags &= ~IBV_REREG_MR_CHANGE_PD;
    constexpr std::size_t lengths[] = {1, 4096, 70000, 1 << 20, 0};
    const auto length = flags & IBV_REREG_MR_CHANGE_TRANSLATION ? random_.any(lengths) : mr->length;
    int access = mr->access;
    if (flags & IBV_REREG_MR_CHANGE_ACCESS)
        access = IBV_ACCESS_LOCAL_WRITE | (random_.one_in(2) ? static_cast<int>(IBV_ACCESS_ON_DEMAND) : 0);
    errno = 0;
    const int status = ibv_rereg_mr(mr.as<ibv_mr>(), flags, pd.as<ibv_pd>(), buffer(), length,
                                    flags & IBV_REREG_MR_CHANGE_ACCESS ? access : 0);
    const auto pinned = access & IBV_ACCESS_ON_DEMAND ? 0 : static_cast<std::int64_t>(length);
    change(mr, "rereg_mr", fmt::format("re-register an MR, flags {}, {} bytes, access {:#x}", flags, length, access),
           Resource::mr_bytes, pinned, status, errno ? errno : EIO);
    if (status == 0) mr->length = length, mr->access = access;
}

void Player::step() {
    if (pool_.count(Kind::context) == 0 || pool_.count(Kind::pd) == 0) return make();
    if (random_.one_in(150)) return close_context(!random_.one_in(4) || queues_first_);
    if (random_.one_in(10)) return resize_cq();
    if (random_.one_in(20)) return modify_srq();
    if (random_.one_in(20)) return rereg_mr();
    const bool crowded = pool_.size() > comfortable;
    if (random_.below(10) < (crowded ? 7U : 4U)) return end();
    make();
}

}  // namespace oracle
