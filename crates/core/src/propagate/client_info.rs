//! How a client introduces itself.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;

/// Name and version of a client, as it states them (`clientInfo` of MCP). Neither is verified.
///
/// Each is cut to 128 characters.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientInfo {
    /// The name.
    pub name: Box<str>,
    /// The version, if the client states one.
    pub version: Option<Box<str>>,
}

impl ClientInfo {
    /// The longest name or version, in characters.
    const LONGEST: usize = 128;

    /// Reads a raw `clientInfo` object. Returns `None` if it is not an object with a name.
    pub fn from_json(raw: &[u8]) -> Option<Self> {
        #[derive(Deserialize)]
        struct Implementation<'a> {
            #[serde(borrow)]
            name: Cow<'a, str>,
            #[serde(default, borrow)]
            version: Option<Cow<'a, str>>,
        }
        let read: Implementation<'_> = serde_json::from_slice(raw).ok()?;
        let cut = |text: &str| text.chars().take(Self::LONGEST).collect();
        Some(Self {
            name: cut(&read.name),
            version: read.version.as_deref().map(cut),
        })
    }
}

impl fmt::Display for ClientInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        match &self.version {
            Some(version) => write!(f, " {version}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_and_version_are_read_and_cut() {
        let read = |raw: &str| ClientInfo::from_json(raw.as_bytes());
        let info = read(r#"{"name":"c\u0061t","version":"1.2","icons":[{"src":"x"}]}"#).unwrap();
        assert_eq!(info.to_string(), "cat 1.2");
        assert_eq!(read(r#"{"name":"cat"}"#).unwrap().version, None);
        let long = format!(r#"{{"name":"{0}","version":"{0}"}}"#, "ü".repeat(10_000));
        let long = read(&long).unwrap();
        assert_eq!(long.name.chars().count(), ClientInfo::LONGEST);
        assert_eq!(long.version.unwrap().chars().count(), ClientInfo::LONGEST);
        for raw in r#" 7 [] {} {"name":7} {"name":"a","version":[]}"#.split(' ') {
            assert_eq!(read(raw), None, "{raw}");
        }
    }
}
