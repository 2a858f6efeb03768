//! The members of a recorded call, each read so that an error names it. `null` is the same as absent.

use std::borrow::Cow;
use std::fmt;

use callward_core::{Delivery, Effect, ToolName};
use serde::de::{Deserialize, Deserializer, Error, Visitor};

use super::{Millis, ResultDigest};

macro_rules! member {
    ($($name:ident: $type:ty),+ $(,)?) => {$(
        pub(super) fn $name<'de, D: Deserializer<'de>>(from: D) -> Result<$type, D::Error> {
            <$type>::deserialize(from).map_err(|error| named(stringify!($name), error))
        }
    )+};
}

macro_rules! or_default {
    ($($name:ident: $type:ty),+ $(,)?) => {$(
        pub(super) fn $name<'de, D: Deserializer<'de>>(from: D) -> Result<$type, D::Error> {
            Option::<$type>::deserialize(from)
                .map(Option::unwrap_or_default)
                .map_err(|error| named(stringify!($name), error))
        }
    )+};
}

fn named<E: Error>(name: &str, error: impl fmt::Display) -> E {
    E::custom(format_args!("`{name}`: {error}"))
}

member! {
    tool: ToolName,
    seq: Option<u64>,
    result_sha1: Option<ResultDigest>,
    result_bytes: Option<u64>,
    write: Option<bool>,
    effect: Option<Effect>,
    idempotent: Option<bool>,
    ttl_ms: Option<u64>,
    delivery: Option<Delivery>,
    layer: Option<u64>,
    at_ms: Option<Millis>,
    duration_ms: Option<Millis>,
    cache: Option<Cow<'static, str>>,
    set: Option<String>,
    principal: Option<String>,
}

or_default! { error: bool }

pub(super) fn trace<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    name(from).map_err(|error| named("trace", error))
}

pub(super) fn session<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    name(from).map_err(|error| named("session", error))
}

/// Reads a name. Who counts sessions may well write numbers.
fn name<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    struct Name;

    impl Visitor<'_> for Name {
        type Value = String;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a text or a number")
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<String, E> {
            Ok(text.to_owned())
        }

        fn visit_u64<E: Error>(self, number: u64) -> Result<String, E> {
            Ok(number.to_string())
        }

        fn visit_i64<E: Error>(self, number: i64) -> Result<String, E> {
            Ok(number.to_string())
        }

        fn visit_f64<E: Error>(self, number: f64) -> Result<String, E> {
            Ok(number.to_string())
        }

        fn visit_unit<E: Error>(self) -> Result<String, E> {
            Ok(String::new())
        }
    }

    from.deserialize_any(Name)
}
