#include "tools/cluster/agent/stream.hpp"

#include <mutex>
#include <optional>

#include <grpcpp/grpcpp.h>

#include "cluster.grpc.pb.h"
#include "tools/cluster/wire/convert.hpp"

namespace rdmaquota::cluster {

struct Stream::Parts {
    std::vector<std::unique_ptr<wire::Coordinators::Stub>> stubs;
    Mailbox& mailbox;
    std::function<Agent&()> agent;
    std::shared_ptr<Call> call;
    std::size_t next = 0;
};

// One stream. gRPC calls it from its threads; it lives until the call is over and nobody sends any more.
class Stream::Call : public grpc::ClientBidiReactor<wire::Report, wire::Word> {
public:
    static std::shared_ptr<Call> start(Parts& parts) {
        auto call = std::shared_ptr<Call>(new Call(parts));
        call->self_ = call;
        parts.stubs[parts.next++ % parts.stubs.size()]->async()->Attach(&call->context_, call.get());
        call->StartRead(&call->word_);
        call->StartCall();
        return call;
    }
    void push(const FromNode& word) {
        const std::lock_guard lock(mutex_);
        next_.emplace();
        wire::write(word, *next_);
        write_next();
    }
    void cancel() { context_.TryCancel(); }

    void OnReadDone(bool ok) override {
        if (!ok) return;
        post([word = wire::read(word_)](Agent& agent) { agent.received(word); });
        word_.Clear();
        StartRead(&word_);
    }
    void OnWriteDone(bool ok) override {
        const std::lock_guard lock(mutex_);
        writing_ = false;
        if (ok) write_next();
    }
    void OnDone(const grpc::Status& status) override {
        {
            const std::lock_guard lock(mutex_);
            done_ = true;
        }
        post([why = status.error_message()](Agent& agent) { agent.disconnected(why); });
        self_.reset();
    }

private:
    explicit Call(Parts& parts) : parts_(parts) {}

    // What comes after another stream was begun is of no interest.
    template <class Letter>
    void post(Letter letter) {
        parts_.mailbox.post([call = self_, &parts = parts_, letter = std::move(letter)] {
            if (parts.call == call) letter(parts.agent());
        });
    }
    void write_next() {
        if (writing_ || done_ || !next_) return;
        writing_ = true;
        report_ = std::move(*next_);
        next_.reset();
        StartWrite(&report_);
    }

    Parts& parts_;
    grpc::ClientContext context_;
    std::shared_ptr<Call> self_;
    std::mutex mutex_;
    wire::Word word_;
    wire::Report report_;
    std::optional<wire::Report> next_;
    bool writing_ = false, done_ = false;
};

Stream::Stream(std::vector<std::string> addresses, const Certificates& certificates, Mailbox& mailbox, std::function<Agent&()> agent)
    : parts_(new Parts{{}, mailbox, std::move(agent), nullptr, 0}) {
    grpc::ChannelArguments arguments;
    arguments.SetSslTargetNameOverride(coordinator_name);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 5'000);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 5'000);
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1'000);
    const auto tls = grpc::SslCredentials({certificates.ca, certificates.key, certificates.certificate});
    for (const auto& address : addresses)
        parts_->stubs.push_back(wire::Coordinators::NewStub(grpc::CreateCustomChannel(address, tls, arguments)));
}

Stream::~Stream() {
    if (parts_->call) parts_->call->cancel();
}

void Stream::connect() { parts_->call = Call::start(*parts_); }

void Stream::send(const FromNode& word) {
    if (parts_->call) parts_->call->push(word);
}

}  // namespace rdmaquota::cluster
