//! Media types: what the client sends and what it takes.

use http::HeaderMap;
use http::header::ACCEPT;

pub(super) const JSON: &str = "application/json";
pub(super) const EVENT_STREAM: &str = "text/event-stream";

/// Which of the two forms of an answer the client takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Accepts {
    pub(super) json: bool,
    pub(super) events: bool,
}

/// What the protocol prescribes. Nearly every client sends it, and parsing it costs 5 % of a cached
/// call.
pub(super) const PRESCRIBED: &str = "application/json, text/event-stream";

impl Accepts {
    /// Reads the `Accept` headers. None at all accepts anything, as everywhere in HTTP.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let takes_both = headers.get(ACCEPT).is_none_or(|value| value == PRESCRIBED);
        let mut accepts = Self {
            json: takes_both,
            events: takes_both,
        };
        if takes_both {
            return accepts;
        }
        let values = headers.get_all(ACCEPT).iter();
        for range in values
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
        {
            let mut parts = range.split(';').map(str::trim);
            let media = parts.next().unwrap_or_default();
            if parts.any(is_refusal) {
                continue;
            }
            accepts.json |= matches(media, JSON);
            accepts.events |= matches(media, EVENT_STREAM);
        }
        accepts
    }
}

/// Returns `true` if a parameter is a weight of zero: "anything but this".
fn is_refusal(parameter: &str) -> bool {
    parameter
        .split_once('=')
        .filter(|(name, _)| name.trim().eq_ignore_ascii_case("q"))
        .and_then(|(_, weight)| weight.trim().parse::<f32>().ok())
        .is_some_and(|weight| weight <= 0.0)
}

fn matches(range: &str, media: &str) -> bool {
    if range == "*/*" || range.eq_ignore_ascii_case(media) {
        return true;
    }
    let (Some((wide, "*")), Some((kind, _))) = (range.split_once('/'), media.split_once('/'))
    else {
        return false;
    };
    wide.eq_ignore_ascii_case(kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accept_is_read_as_http_means_it() {
        for (accept, json, events) in [
            ("application/json, text/event-stream", true, true),
            ("Application/JSON;q=0.5", true, false),
            ("text/event-stream; charset=utf-8", false, true),
            ("*/*", true, true),
            ("text/*", false, true),
            ("application/json;q=0, */*", true, true),
            ("text/event-stream;q=0.0", false, false),
            ("text/html", false, false),
            ("", false, false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, accept.parse().unwrap());
            assert_eq!(Accepts::of(&headers), Accepts { json, events }, "{accept}");
        }
        let anything = Accepts::of(&HeaderMap::new());
        assert!(anything.json && anything.events);
    }
}
