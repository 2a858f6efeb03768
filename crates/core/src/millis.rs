//! Durations as milliseconds in JSON, to the microsecond: an integer where they are whole.

use std::time::Duration;

use serde::Serializer;

pub(crate) fn serialize<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
    let whole = time.subsec_micros().is_multiple_of(1000);
    match u64::try_from(time.as_millis()) {
        Ok(millis) if whole => to.serialize_u64(millis),
        _ => to.serialize_f64(time.as_micros() as f64 / 1e3),
    }
}

/// A duration that may be absent. An invalid time counts as absent.
pub(crate) mod optional {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(
        time: &Option<Duration>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        match time {
            Some(time) => super::serialize(time, to),
            None => to.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Duration>, D::Error> {
        let millis = Option::<f64>::deserialize(from)?;
        Ok(millis.and_then(|millis| Duration::try_from_secs_f64(millis / 1e3).ok()))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    #[test]
    fn milliseconds_are_whole_numbers_where_they_can_be() {
        for (time, written) in [
            (Duration::from_secs(5), "5000"),
            (Duration::from_micros(104_200), "104.2"),
            (Duration::from_nanos(1_000_999), "1"),
            (Duration::MAX, "1.8446744073709552e+22"),
        ] {
            let mut text = Vec::new();
            let mut to = serde_json::Serializer::new(&mut text);
            super::serialize(&time, &mut to).unwrap();
            assert_eq!(String::from_utf8(text).unwrap(), written);
        }
    }
}
