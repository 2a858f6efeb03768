//! The content of the file: all toolsets, by name.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::error::ToolsetError;
use crate::model::{Toolset, fits};
use crate::text::Name;

/// The most toolsets of a file.
const MAX_TOOLSETS: usize = 256;

/// All toolsets of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Toolsets {
    /// The toolsets, by name.
    #[serde(default, deserialize_with = "each_once")]
    pub toolsets: BTreeMap<Name, Toolset>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

impl Toolsets {
    /// Finds a toolset to change it.
    ///
    /// # Errors
    ///
    /// [`ToolsetError::NoToolset`] if there is none.
    pub fn get_mut(&mut self, name: &Name) -> Result<&mut Toolset, ToolsetError> {
        let found = self.toolsets.get_mut(name);
        found.ok_or_else(|| ToolsetError::NoToolset(name.clone()))
    }

    /// Adds a toolset.
    ///
    /// # Errors
    ///
    /// [`ToolsetError`] if its name is taken, or there are too many.
    pub fn add(&mut self, name: Name, toolset: Toolset) -> Result<(), ToolsetError> {
        if self.toolsets.contains_key(&name) {
            return Err(ToolsetError::Taken(name));
        }
        fits("the toolsets", self.toolsets.len() + 1, MAX_TOOLSETS)?;
        self.toolsets.insert(name, toolset);
        Ok(())
    }
}

/// Reads toolsets of which each is there once: of two, one would be lost with the next change.
fn each_once<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<Name, Toolset>, D::Error> {
    struct ByName;

    impl<'de> Visitor<'de> for ByName {
        type Value = BTreeMap<Name, Toolset>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object with a toolset for each name")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut all = BTreeMap::new();
            while let Some(name) = map.next_key::<Name>()? {
                if all.contains_key(&name) {
                    return Err(A::Error::custom(format_args!("`{name}` is there twice")));
                }
                all.insert(name, map.next_value()?);
            }
            Ok(all)
        }
    }

    from.deserialize_map(ByName)
}
