#include "tools/cluster/etcd/etcd_store.hpp"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include <fmt/core.h>
#include <grpcpp/grpcpp.h>

#include "rpc.grpc.pb.h"

namespace rdmaquota::cluster {
namespace {

namespace pb = etcdserverpb;

constexpr auto patience = std::chrono::seconds(3);
constexpr std::int64_t lease_s = 5;
constexpr int longest_answer = 512 << 20;

// The key behind the last one with this prefix.
std::string range_end(std::string prefix) {
    ++prefix.back();
    return prefix;
}

}  // namespace

struct EtcdStore::Parts {
    struct Member {
        std::unique_ptr<pb::KV::Stub> kv;
        std::unique_ptr<pb::Lease::Stub> lease;
        std::unique_ptr<pb::Maintenance::Stub> maintenance;
    };

    std::string prefix;
    Mailbox& mailbox;
    std::vector<Member> members;
    std::size_t present = 0;  // the member that is asked
    std::int64_t lease = 0;
    std::mutex mutex;
    std::condition_variable wakes;
    std::deque<std::function<void()>> requests;
    bool ends = false;
    std::thread thread;

    Parts(std::string prefix, Mailbox& mailbox) : prefix(std::move(prefix)), mailbox(mailbox) {}

    void ask(std::function<void()> request) {
        const std::lock_guard lock(mutex);
        requests.push_back(std::move(request));
        wakes.notify_one();
    }
    void run() {
        std::unique_lock lock(mutex);
        while (true) {
            wakes.wait(lock, [this] { return ends || !requests.empty(); });
            if (ends) return;
            const auto request = std::move(requests.front());
            requests.pop_front();
            lock.unlock();
            request();
            lock.lock();
        }
    }

    // A member that does not answer is not the next to be asked.
    template <class Call>
    grpc::Status call(Call call) {
        grpc::ClientContext context;
        context.set_deadline(std::chrono::system_clock::now() + patience);
        const auto status = call(members[present], context);
        if (!status.ok()) present = (present + 1) % members.size();
        return status;
    }

    Result<void> renew() {
        if (lease != 0) {
            pb::LeaseKeepAliveResponse answer;
            const auto status = call([&](Member& member, grpc::ClientContext& context) {
                pb::LeaseKeepAliveRequest request;
                request.set_id(lease);
                const auto stream = member.lease->LeaseKeepAlive(&context);
                if (stream->Write(request)) stream->Read(&answer);
                stream->WritesDone();
                return stream->Finish();
            });
            if (answer.ttl() > 0) return {};
            if (!status.ok()) return Error{status.error_message()};
        }
        pb::LeaseGrantRequest request;
        pb::LeaseGrantResponse answer;
        request.set_ttl(lease_s);
        const auto status = call([&](Member& member, grpc::ClientContext& context) { return member.lease->LeaseGrant(&context, request, &answer); });
        lease = status.ok() ? answer.id() : 0;
        return status.ok() ? Result<void>() : Error{status.error_message()};
    }

    // Another incarnation of this coordinator is another leader: its lease has to end first.
    Result<Leader> lead(const std::string& name) {
        if (const auto renewed = renew(); !renewed) return Error{renewed.error()};
        pb::TxnRequest request;
        auto& compare = *request.add_compare();
        compare.set_key(prefix + "leader");
        compare.set_target(pb::Compare::CREATE);
        compare.set_result(pb::Compare::EQUAL);
        compare.set_create_revision(0);
        auto& put = *request.add_success()->mutable_request_put();
        put.set_key(prefix + "leader");
        put.set_value(name);
        put.set_lease(lease);
        request.add_failure()->mutable_request_range()->set_key(prefix + "leader");
        pb::TxnResponse answer;
        const auto status = call([&](Member& member, grpc::ClientContext& context) { return member.kv->Txn(&context, request, &answer); });
        if (!status.ok()) return Error{status.error_message()};
        if (answer.succeeded()) return Leader{name, static_cast<std::uint64_t>(answer.header().revision())};
        const auto& range = answer.responses(0).response_range();
        if (range.kvs_size() == 0) return Error{"the leader's key vanished meanwhile"};
        const auto& key = range.kvs(0);
        return Leader{key.value() == name && key.lease() != lease ? name + " (before)" : key.value(), static_cast<std::uint64_t>(key.create_revision())};
    }

    Result<Snapshot> read() {
        pb::RangeRequest request;
        request.set_key(prefix);
        request.set_range_end(range_end(prefix));
        pb::RangeResponse answer;
        pb::StatusResponse state;
        const auto asked = present;
        auto status = call([&](Member& member, grpc::ClientContext& context) { return member.kv->Range(&context, request, &answer); });
        // By the same member, whose raft index is not older than what it answered.
        if (status.ok())
            status = call([&](Member&, grpc::ClientContext& context) { return members[asked].maintenance->Status(&context, {}, &state); });
        if (!status.ok()) return Error{fmt::format("etcd does not answer: {}", status.error_message())};
        Snapshot snapshot{static_cast<std::uint64_t>(answer.header().revision()), state.raftindex(), {}};
        for (const auto& kv : answer.kvs())
            snapshot.keys.push_back({kv.key().substr(prefix.size()), kv.value(), static_cast<std::uint64_t>(kv.mod_revision()),
                                     static_cast<std::uint64_t>(kv.create_revision())});
        return snapshot;
    }

    Written write(const Transaction& transaction) {
        pb::TxnRequest request;
        for (const auto& [key, what, revision] : transaction.compares) {
            auto& compare = *request.add_compare();
            compare.set_key(prefix + key);
            compare.set_result(pb::Compare::EQUAL);
            const bool by_create = what == Transaction::Compare::What::create_revision;
            compare.set_target(by_create ? pb::Compare::CREATE : pb::Compare::MOD);
            if (by_create) compare.set_create_revision(static_cast<std::int64_t>(revision));
            else compare.set_mod_revision(static_cast<std::int64_t>(revision));
        }
        for (const auto& put_key : transaction.puts) {
            auto& put = *request.add_success()->mutable_request_put();
            put.set_key(prefix + put_key.key);
            put.set_value(put_key.value);
        }
        for (const auto& key : transaction.erased) request.add_success()->mutable_request_delete_range()->set_key(prefix + key);
        pb::TxnResponse answer;
        const auto status = call([&](Member& member, grpc::ClientContext& context) { return member.kv->Txn(&context, request, &answer); });
        if (!status.ok()) return {Written::What::unclear, 0};
        return {answer.succeeded() ? Written::What::done : Written::What::refused, static_cast<std::uint64_t>(answer.header().revision())};
    }
};

EtcdStore::EtcdStore(std::vector<std::string> endpoints, const Certificates& certificates, std::string prefix, Mailbox& mailbox)
    : parts_(std::make_unique<Parts>(std::move(prefix), mailbox)) {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(longest_answer);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1'000);
    const auto tls = grpc::SslCredentials({certificates.ca, certificates.key, certificates.certificate});
    for (const auto& endpoint : endpoints) {
        const auto channel = grpc::CreateCustomChannel(endpoint, tls, arguments);
        parts_->members.push_back({pb::KV::NewStub(channel), pb::Lease::NewStub(channel), pb::Maintenance::NewStub(channel)});
    }
    parts_->thread = std::thread([this] { parts_->run(); });
}

EtcdStore::~EtcdStore() {
    {
        const std::lock_guard lock(parts_->mutex);
        parts_->ends = true;
        parts_->wakes.notify_one();
    }
    parts_->thread.join();
}

void EtcdStore::lead(const std::string& name, std::function<void(Result<Leader>)> answer) {
    parts_->ask([&parts = *parts_, name, answer = std::move(answer)] {
        parts.mailbox.post([answer, leader = parts.lead(name)] { answer(leader); });
    });
}

void EtcdStore::read(std::function<void(Result<Snapshot>)> answer) {
    parts_->ask([&parts = *parts_, answer = std::move(answer)] {
        parts.mailbox.post([answer, snapshot = parts.read()] { answer(snapshot); });
    });
}

void EtcdStore::write(Transaction transaction, std::function<void(Written)> answer) {
    parts_->ask([&parts = *parts_, transaction = std::move(transaction), answer = std::move(answer)] {
        parts.mailbox.post([answer, written = parts.write(transaction)] { answer(written); });
    });
}

}  // namespace rdmaquota::cluster
