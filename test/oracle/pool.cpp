#include "pool.hpp"

#include <algorithm>

namespace oracle {
namespace {

template <class Fits>
ObjectPtr any_of(const std::vector<ObjectPtr>& objects, Random& random, Fits fits) {
    const auto first = objects.empty() ? 0 : random.below(objects.size());
    for (std::size_t i = 0; i < objects.size(); ++i)
        if (const auto& object = objects[(first + i) % objects.size()]; fits(*object)) return object;
    return nullptr;
}

}  // namespace

Pin::~Pin() {
    if (!object_) return;
    const std::lock_guard lock(pool_->mutex_);
    --object_->pins;
    if (context_) --context_->pins;
}

ObjectPtr Pool::context_of(const Object& object) const {
    for (const auto& other : objects_)
        if (other->kind == Kind::context && other->verbs == object.verbs && other.get() != &object) return other;
    return nullptr;
}

void Pool::add(ObjectPtr object) {
    const std::lock_guard lock(mutex_);
    objects_.push_back(std::move(object));
}

Pin Pool::pick(Kind kind, Random& random, const ibv_context* of) {
    const std::lock_guard lock(mutex_);
    const auto found =
        any_of(objects_, random, [&](const Object& o) { return o.kind == kind && (!of || o.verbs == of); });
    if (!found) return {};
    const auto context = context_of(*found);
    ++found->pins;
    if (context) ++context->pins;
    return {this, found, context};
}

Pin Pool::pin_context(const ibv_context* verbs) {
    const std::lock_guard lock(mutex_);
    for (const auto& object : objects_)
        if (object->kind == Kind::context && object->verbs == verbs) {
            ++object->pins;
            return {this, object, nullptr};
        }
    return {};
}

Pin Pool::take(Random& random, const Kind* kind) {
    const std::lock_guard lock(mutex_);
    const auto found = any_of(objects_, random, [&](const Object& o) {
        return o.pins == 0 && o.kind != Kind::context && (!kind || o.kind == *kind);
    });
    if (!found) return {};
    std::erase(objects_, found);
    const auto context = context_of(*found);
    ++found->pins;
    if (context) ++context->pins;
    return {this, found, context};
}

std::vector<ObjectPtr> Pool::take_context(Random& random) {
    const std::lock_guard lock(mutex_);
    const auto context =
        any_of(objects_, random, [](const Object& o) { return o.kind == Kind::context && o.pins == 0; });
    if (!context) return {};
    std::vector<ObjectPtr> taken{context};
    for (const auto& object : objects_)
        if (object != context && object->verbs == context->verbs) taken.push_back(object);
    std::erase_if(objects_, [&](const ObjectPtr& o) { return o->verbs == context->verbs; });
    return taken;
}

std::size_t Pool::count(Kind kind) {
    const std::lock_guard lock(mutex_);
    return static_cast<std::size_t>(
        std::count_if(objects_.begin(), objects_.end(), [&](const ObjectPtr& o) { return o->kind == kind; }));
}

std::size_t Pool::size() {
    const std::lock_guard lock(mutex_);
    return objects_.size();
}

void Pool::keep(const Tally& cost) {
    const std::lock_guard lock(mutex_);
    kept_.add(cost);
}

Tally Pool::expected() {
    const std::lock_guard lock(mutex_);
    Tally sum = kept_;
    for (const auto& object : objects_) sum.add(object->cost);
    return sum;
}

}  // namespace oracle
