// The verbs objects that are alive, for one thread or many.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include <infiniband/verbs.h>

#include "tally.hpp"

namespace oracle {

enum class Kind {
    context,
    channel,
    pd,
    domain,
    td,
    cq,
    mr,
    mw,
    qp,
    srq,
    ah,
    xrcd,
    wq,
    wq_table,
    flow,
    flow_action,
    counters,
    dm,
};

struct Object {
    Kind kind{};
    void* handle = nullptr;
    ibv_context* verbs = nullptr;  // the context that it belongs to; for a context, itself
    Tally cost;                    // what it should be charged now
    int (*end)(void* handle) = nullptr;
    std::size_t length = 0;  // of an MR
    int access = 0;          // of an MR
    int pins = 0;
};
using ObjectPtr = std::shared_ptr<Object>;

class Pool;

// An object that nobody destroys meanwhile, nor closes its context. Move-only; may be empty.
class Pin {
public:
    Pin() = default;
    Pin(Pool* pool, ObjectPtr object, ObjectPtr context)
        : pool_(pool), object_(std::move(object)), context_(std::move(context)) {}
    Pin(Pin&& other) noexcept
        : pool_(other.pool_), object_(std::move(other.object_)), context_(std::move(other.context_)) {}
    Pin& operator=(Pin&&) = delete;
    ~Pin();

    explicit operator bool() const { return object_ != nullptr; }
    Object* operator->() const { return object_.get(); }
    const ObjectPtr& object() const { return object_; }
    template <class T>
    T* as() const {
        return object_ ? static_cast<T*>(object_->handle) : nullptr;
    }

private:
    Pool* pool_ = nullptr;
    ObjectPtr object_, context_;
};

class Pool {
public:
    void add(ObjectPtr object);
    Pin pick(Kind kind, Random& random, const ibv_context* of = nullptr);
    Pin pin_context(const ibv_context* verbs);
    // Takes an object out that nobody uses, of `kind` or of any but contexts; its context is pinned.
    Pin take(Random& random, const Kind* kind = nullptr);
    // Takes a context out that nobody uses, with all that belongs to it: the context comes first.
    std::vector<ObjectPtr> take_context(Random& random);

    std::size_t count(Kind kind);
    std::size_t size();
    // What stays charged until the process ends, though no object of the pool is behind it.
    void keep(const Tally& cost);
    Tally expected();  // the sum over what is in the pool, and what was kept

private:
    friend class Pin;
    ObjectPtr context_of(const Object& object) const;
    std::mutex mutex_;
    std::vector<ObjectPtr> objects_;
    Tally kept_;
};

}  // namespace oracle
