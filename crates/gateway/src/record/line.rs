//! Writes a call that ended as a line.

use callward::core::{FingerprintKey, Members, OutputStatus, ToolName};
use callward::{Effect, ToolCall, ToolOutput};
use callward_replay::trace::RecordedCall;
use serde_json::json;
use serde_json::value::RawValue;
use sha1::{Digest, Sha1};

use super::Recorded;

/// Makes lines, with or without the arguments of calls.
#[derive(Debug)]
pub(super) struct Scribe {
    pub(super) trace: String,
    /// Keys the hashes, so that values cannot be guessed.
    pub(super) secret: FingerprintKey,
    /// Writes arguments as they are.
    pub(super) arguments: bool,
}

impl Scribe {
    pub(super) fn describe(&self, recorded: &Recorded) -> RecordedCall {
        let call = &recorded.call;
        let plan = call.plan();
        let name = ToolName::new(&recorded.tool).unwrap_or_else(|_| call.tool().name().clone());
        let output = recorded.answer.as_ref().ok();
        RecordedCall {
            trace: self.trace.clone(),
            session: self.session(call),
            seq: Some(recorded.seq),
            tool: name,
            args: self.args(call.arguments()),
            result_sha1: output.map(digest),
            result_bytes: output.map(|output| output.body().len() as u64),
            error: output.is_none_or(ToolOutput::is_error),
            write: Some(plan.effect.is_write()),
            effect: Some(plan.effect),
            idempotent: None,
            ttl_ms: lifetime(call, output),
            delivery: recorded.answer.as_ref().err().copied(),
            layer: None,
            at_ms: Some(recorded.at),
            duration_ms: Some(recorded.took),
            cache: Some(recorded.record.with(|facts| facts.cache).as_str().into()),
            set: Some(call.tool().set().as_str().to_owned()),
            principal: Some(self.hash(call.caller().principal.as_str().as_bytes())),
        }
    }

    /// A session's own name may open it: never written as it is.
    fn session(&self, call: &ToolCall) -> String {
        let caller = call.caller();
        let session = caller.session.as_ref();
        let name = session.map_or(caller.principal.as_str(), |session| session.as_str());
        self.hash(name.as_bytes())
    }

    fn hash(&self, bytes: &[u8]) -> String {
        short(self.secret.bytes(bytes))
    }

    /// Writes the arguments as they are, or each value as a hash: equal values stay equal.
    fn args(&self, raw: &[u8]) -> Option<Box<RawValue>> {
        let text = std::str::from_utf8(raw).ok()?;
        if self.arguments
            && let Ok(args) = RawValue::from_string(text.trim().to_owned())
        {
            return Some(args);
        }
        let hashed = Members::read(text).map(|members| self.members(&members));
        RawValue::from_string(hashed.unwrap_or_else(|_| self.value(text))).ok()
    }

    /// Writes each value as its hash; members that are given twice stay so.
    fn members(&self, members: &Members<'_>) -> String {
        let member = |(name, value): (&str, &RawValue)| {
            format!("{}:{}", json!(name), self.value(value.get()))
        };
        let members: Vec<_> = members.iter().map(member).collect();
        format!("{{{}}}", members.join(","))
    }

    /// Hashes a value by its meaning, or by its text if it can be read in two ways; as JSON.
    fn value(&self, raw: &str) -> String {
        let raw = raw.as_bytes();
        let hash = self
            .secret
            .json(raw)
            .unwrap_or_else(|| self.secret.bytes(raw));
        format!("{:?}", short(hash))
    }
}

fn short(hash: u128) -> String {
    format!("{:016x}", hash >> 64)
}

fn digest(output: &ToolOutput) -> String {
    let digest = Sha1::digest(output.body());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// How long the result may be kept; nothing for what never is.
fn lifetime(call: &ToolCall, output: Option<&ToolOutput>) -> Option<u64> {
    let plan = call.plan();
    if !matches!(plan.effect, Effect::ReadOnly | Effect::Idempotent) {
        return None;
    }
    // a round of an exchange belongs to the caller in the exchange
    let is_whole = output.is_none_or(|output| output.status() == OutputStatus::Complete);
    let ttl = plan.result_ttl().filter(|_| is_whole).unwrap_or_default();
    Some(u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scribe(arguments: bool) -> Scribe {
        Scribe {
            trace: "t".into(),
            secret: FingerprintKey::new(1, 2),
            arguments,
        }
    }

    fn args(arguments: bool, raw: &str) -> String {
        scribe(arguments)
            .args(raw.as_bytes())
            .unwrap()
            .get()
            .to_owned()
    }

    #[test]
    fn values_are_hashed_and_equal_ones_stay_equal() {
        let one = args(false, r#"{"id": "secret", "copy":"secret", "n": [1, 2]}"#);
        let two = args(false, r#"{"id":"s\u0065cret","copy":"other","n":[1,2]}"#);
        assert!(!one.contains("secret"), "{one}");
        let [one, two]: [serde_json::Value; 2] =
            [one, two].map(|text| serde_json::from_str(&text).unwrap());
        assert_eq!(one["id"], one["copy"]);
        assert_eq!(one["id"], two["id"]);
        assert_ne!(one["copy"], two["copy"]);
        assert_eq!(one["n"], two["n"]);
        // another recording has other hashes
        let secret = FingerprintKey::new(3, 4);
        let other = Scribe {
            secret,
            ..scribe(false)
        };
        let raw = r#"{"id":1}"#;
        assert_ne!(other.args(raw.as_bytes()).unwrap().get(), args(false, raw));
    }

    #[test]
    fn arguments_are_written_as_they_are_where_asked() {
        let raw = "{\"id\": 9007199254740993,\n \"x\": 1e2}";
        assert_eq!(args(true, raw), raw);
    }

    #[test]
    fn what_can_be_read_in_two_ways_still_can() {
        let twice = args(false, r#"{"id":1,"id":2}"#);
        assert_eq!(twice.matches("\"id\"").count(), 2, "{twice}");
        let inside = args(false, r#"{"x":{"id":1,"id":2}}"#);
        assert!(inside.starts_with(r#"{"x":""#), "{inside}");
        assert!(args(false, "[1]").starts_with('"'));
    }
}
