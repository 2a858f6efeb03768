//! Enums whose variants are words: one list of variants, words and meanings.

/// Makes an enum of words: what JSON, spans and tables show is the word beside each variant, and what
/// documents say of it is its line of documentation.
macro_rules! words {
    (
        $(#[$doc:meta])* $name:ident {
            $(#[doc = $meaning:literal] $variant:ident = $word:literal,)+
        }
    ) => {
        $(#[$doc])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, Hash, ::serde::Serialize, ::serde::Deserialize,
        )]
        #[non_exhaustive]
        pub enum $name {
            $(#[doc = $meaning] #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            /// All of them, in their order.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// Returns the word used in spans, metrics, tables and JSON.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }

            /// Returns what it means, in a sentence or two.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self {
                    $(Self::$variant => $meaning.trim_ascii(),)+
                }
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}

pub(crate) use words;
