//! Enums whose variants are words: one list of variants, words and meanings.

/// Makes an enum of words. JSON, spans and tables show the word beside each variant; its line of
/// documentation is also its meaning. Variants are ordered as they are listed.
#[doc(hidden)]
#[macro_export]
macro_rules! words {
    (
        $(#[$meta:meta])* $name:ident {
            $($(#[doc = $meaning:literal])+ $variant:ident = $word:literal,)+
        } $(default $default:ident)?
    ) => {
        $(#[$meta])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, ::serde::Serialize,
            ::serde::Deserialize,
        )]
        pub enum $name {
            $($(#[doc = $meaning])+ #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            /// All of them, in their order.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// Returns the word used in configs, spans, metrics, tables and JSON.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }

            /// Finds one by its word.
            pub fn by_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|known| known.as_str() == name)
            }

            /// Returns what it means, in a sentence or two.
            pub const fn meaning(self) -> &'static str {
                match self {
                    $(Self::$variant => concat!($($meaning),+).trim_ascii(),)+
                }
            }
        }

        $(impl Default for $name {
            fn default() -> Self {
                Self::$default
            }
        })?

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}
