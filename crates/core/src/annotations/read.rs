//! Hints read from JSON. By hand, so that an error names the field and not only its place.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};

use crate::{Annotations, Field};

impl<'de> Deserialize<'de> for Annotations {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Hints)
    }
}

/// Adds a member's name to what is wrong with its value.
pub(crate) fn named<E: Error>(name: &str, error: impl fmt::Display) -> E {
    E::custom(format_args!("{name}: {error}"))
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
            let name = key.as_str();
            macro_rules! read {
                ($($field:ident from $($key:literal)|+ as $member:ident,)+) => {
                    match name {
                        $($($key)|+ => entries.read(Field::$field, name, &mut out.$member)?,)+
                        _ => {
                            let value = entries.map.next_value()?;
                            out.vendor.insert(key, value);
                        }
                    }
                };
            }
            read! {
                Title from "title" as title,
                ReadOnly from "readOnlyHint" | "readOnly" as read_only_hint,
                Destructive from "destructiveHint" | "destructive" as destructive_hint,
                Idempotent from "idempotentHint" | "idempotent" as idempotent_hint,
                OpenWorld from "openWorldHint" | "openWorld" as open_world_hint,
                RequiresConfirmation from "requiresConfirmation" as requires_confirmation,
                Tags from "tags" as tags,
                EstimatedDuration from "estimatedDuration" as estimated_duration,
                RateLimitHint from "rateLimitHint" as rate_limit_hint,
                CostHint from "costHint" as cost_hint,
                Complexity from "complexity" as complexity,
                AuditRequired from "auditRequired" as audit_required,
                SecurityLevel from "securityLevel" as security_level,
            }
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
        *into = self.map.next_value().map_err(|error| named(name, error))?;
        Ok(())
    }
}
