//! Who is refused when the line is full.

/// Who is refused when the line is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[expect(
    clippy::exhaustive_enums,
    reason = "a line has two ends; who stands between is no better a choice"
)]
pub enum Shed {
    /// The call that comes: those in line keep what they have waited for. The default.
    #[default]
    Newest,
    /// The call that has waited longest: under lasting overload its caller is the likeliest to have
    /// given up, and the newest the likeliest to be answered in time.
    Oldest,
}

impl Shed {
    /// Returns the word used in config files and messages.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Newest => "newest",
            Self::Oldest => "oldest",
        }
    }
}
