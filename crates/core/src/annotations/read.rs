//! Reads hints from JSON. Written by hand, so that an error names the field as well as its place.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};

use crate::{Annotations, Field};

impl<'de> Deserialize<'de> for Annotations {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Hints)
    }
}

struct Hints;

impl<'de> Visitor<'de> for Hints {
    type Value = Annotations;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of hints")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Annotations, A::Error> {
        let mut out = Annotations::default();
        let mut entries = Entries { map, seen: 0 };
        while let Some(key) = entries.map.next_key::<String>()? {
            let Some(field) = Field::by_key(&key) else {
                let value = entries.map.next_value()?;
                out.vendor.insert(key, value);
                continue;
            };
            match field {
                Field::Title => entries.read(field, &key, &mut out.title),
                Field::ReadOnly => entries.read(field, &key, &mut out.read_only_hint),
                Field::Destructive => entries.read(field, &key, &mut out.destructive_hint),
                Field::Idempotent => entries.read(field, &key, &mut out.idempotent_hint),
                Field::OpenWorld => entries.read(field, &key, &mut out.open_world_hint),
                Field::RequiresConfirmation => {
                    entries.read(field, &key, &mut out.requires_confirmation)
                }
                Field::Tags => entries.read(field, &key, &mut out.tags),
                Field::EstimatedDuration => entries.read(field, &key, &mut out.estimated_duration),
                Field::RateLimitHint => entries.read(field, &key, &mut out.rate_limit_hint),
                Field::CostHint => entries.read(field, &key, &mut out.cost_hint),
                Field::Complexity => entries.read(field, &key, &mut out.complexity),
                Field::AuditRequired => entries.read(field, &key, &mut out.audit_required),
                Field::SecurityLevel => entries.read(field, &key, &mut out.security_level),
            }?;
        }
        Ok(out)
    }
}

/// The members of the object, and which of our fields were among them.
struct Entries<A> {
    map: A,
    seen: u16,
}

impl<'de, A: MapAccess<'de>> Entries<A> {
    /// Reads the value of a field. `null` says nothing; a second value is an error, because it is
    /// ambiguous.
    fn read<T: Deserialize<'de>>(
        &mut self,
        field: Field,
        name: &str,
        into: &mut Option<T>,
    ) -> Result<(), A::Error> {
        let bit = 1_u16 << field as u16;
        if self.seen & bit != 0 {
            return Err(A::Error::duplicate_field(field.as_str()));
        }
        self.seen |= bit;
        let named = |error| A::Error::custom(format_args!("{name}: {error}"));
        *into = self.map.next_value().map_err(named)?;
        Ok(())
    }
}
