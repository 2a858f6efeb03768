//! What one layer keeps with a tool.

use std::any::Any;
use std::fmt;
use std::sync::OnceLock;

/// What one layer keeps with a tool. A clone of a tool is another tool, with which nothing is kept yet.
#[derive(Default)]
pub(crate) struct Keepsake(OnceLock<Box<dyn Any + Send + Sync>>);

impl Keepsake {
    pub(crate) fn get<T: Any>(&self) -> Option<&T> {
        self.0.get()?.downcast_ref()
    }

    /// Says whether it is kept: it is not where something is already.
    pub(crate) fn set<T: Any + Send + Sync>(&self, value: T) -> bool {
        self.0.set(Box::new(value)).is_ok()
    }
}

impl Clone for Keepsake {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl fmt::Debug for Keepsake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keepsake")
            .field("is_set", &self.0.get().is_some())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_first_stays_and_is_found_by_its_type() {
        let keepsake = Keepsake::default();
        assert_eq!(keepsake.get::<u32>(), None);
        assert!(keepsake.set(7_u32));
        assert!(!keepsake.set(8_u32));
        assert_eq!(keepsake.get::<u32>(), Some(&7));
        assert_eq!(keepsake.get::<u64>(), None);
    }

    #[test]
    fn a_clone_keeps_nothing() {
        let keepsake = Keepsake::default();
        assert!(keepsake.set(7_u32));
        let clone = keepsake.clone();
        assert_eq!(
            (keepsake.get::<u32>(), clone.get::<u32>()),
            (Some(&7), None)
        );
    }
}
