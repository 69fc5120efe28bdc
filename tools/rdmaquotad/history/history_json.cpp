#include "tools/rdmaquotad/history/history_json.hpp"

#include <algorithm>
#include <iterator>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tools/common/views/json.hpp"

namespace rdmaquota {
namespace {

constexpr std::string_view tail = "]}\n";

// Leaves out spans before the first that was seen, and the present one while it has no sample.
std::vector<Span> spans_of(const Ring& ring, std::uint64_t time_s, bool whole) {
    auto spans = ring.last(time_s);
    if (!whole && spans.back().usage == Span::unseen && spans.end()[-2].usage != Span::unseen) spans.pop_back();
    const auto first = std::find_if(spans.begin(), spans.end(),
                                    [](const Span& span) { return span.usage != Span::unseen; });
    spans.erase(spans.begin(), first);
    return spans;
}

// Not by the JSON library: there are some hundred thousand of these numbers.
void add_numbers(std::string& text, std::span<const Span> spans, std::uint64_t Span::* member) {
    text += '[';
    for (const auto& span : spans) {
        if (&span != &spans.front()) text += ',';
        if (span.usage == Span::unseen) text += "null";
        else text += fmt::format_int(span.*member).c_str();
    }
    text += ']';
}

void add_series(std::string& text, const SeriesName& name, const History::Series& series, std::uint64_t time_s,
                bool whole) {
    fmt::format_to(std::back_inserter(text), "{{\"tenant\":{},\"device\":{},\"resource\":{}", dump(Json(name.tenant)),
                   dump(Json(name.device)), dump(Json(info(name.resource).name)));
    for (const auto& ring : series.rings) {
        fmt::format_to(std::back_inserter(text), ",\"{}\":{{\"period\":{}", ring.shape().name, ring.shape().seconds);
        const auto spans = spans_of(ring, time_s, whole);
        text += ",\"usage\":";
        add_numbers(text, spans, &Span::usage);
        text += ",\"peak\":";
        add_numbers(text, spans, &Span::peak);
        text += '}';
    }
    text += '}';
}

}  // namespace

std::string series_text(const SeriesName& name, const History::Series& series, std::uint64_t time_s) {
    std::string text;
    add_series(text, name, series, time_s, false);
    return text;
}

std::string last_hour_text(const History& history, const std::function<bool(const std::string&)>& sees, std::uint64_t time_s) {
    constexpr std::size_t minutes = 1, in_an_hour = 60;  // the ring's number; its spans
    std::string text = "[";
    for (const auto& [name, series] : history.all()) {
        if (!sees(name.tenant)) continue;
        fmt::format_to(std::back_inserter(text), "{}[{},{},{},", text.size() == 1 ? "" : ",", dump(Json(name.tenant)),
                       dump(Json(name.device)), dump(Json(info(name.resource).name)));
        const auto spans = series.rings[minutes].last(time_s);
        add_numbers(text, std::span<const Span>(spans).last(in_an_hour), &Span::usage);
        text += ']';
    }
    return text + ']';
}

HistoryText::HistoryText(const History& history, std::uint64_t time_s, bool whole) {
    auto text = fmt::format("{{\"version\":{},\"time\":{},\"history\":[", control_version, time_s);
    head_ = text.size();
    for (const auto& [name, series] : history.all()) {
        if (!parts_.empty()) text += ',';
        const auto begin = text.size();
        add_series(text, name, series, time_s, whole);
        tenants_.insert(name.tenant);
        parts_.push_back({name.tenant, name.device, info(name.resource).name, begin, text.size() - begin});
    }
    text += tail;
    all_ = std::make_shared<const std::string>(std::move(text));
}

std::shared_ptr<const std::string> HistoryText::answer(const Request& request, const Sees& sees) {
    std::set<std::string> hidden;
    if (sees)
        std::copy_if(tenants_.begin(), tenants_.end(), std::inserter(hidden, hidden.end()),
                     [&](const std::string& tenant) { return !sees(tenant); });
    if (hidden.empty() && request.tenant.empty() && request.device.empty() && request.resource.empty()) return all_;
    const auto key = fmt::format("{}\n{}\n{}\n{}", request.tenant, request.device, request.resource,
                                 fmt::join(hidden, "\n"));
    if (const auto found = cut_.find(key); found != cut_.end()) return found->second;
    if (cut_.size() >= most_cut) cut_.clear();
    return cut_[key] = cut(request, hidden);
}

std::shared_ptr<const std::string> HistoryText::cut(const Request& request, const std::set<std::string>& hidden) const {
    const auto fits = [](const auto& asked, const auto& is) { return asked.empty() || asked == is; };
    auto text = all_->substr(0, head_);
    for (const auto& part : parts_) {
        if (!fits(request.tenant, part.tenant) || !fits(request.device, part.device) ||
            !fits(request.resource, part.resource) || hidden.contains(part.tenant))
            continue;
        if (text.size() > head_) text += ',';
        text.append(*all_, part.begin, part.size);
    }
    text += tail;
    return std::make_shared<const std::string>(std::move(text));
}

}  // namespace rdmaquota
