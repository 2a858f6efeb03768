//! The names of tools, kept from one run to the next: no server gets the name of another one's
//! tool.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};

use callward::Stack;
use callward::core::ReplicaSetId;
use callward::registry::KeptName;
use futures_util::StreamExt;

use crate::state_dir::{StateDir, read_json, write_json};

/// The file for the names of one config.
#[derive(Debug)]
pub(crate) struct NameFile {
    path: PathBuf,
    /// The catalogue whose names it has.
    saved: u64,
}

impl NameFile {
    /// Returns the file of a config. `None` where there is no state directory, or it cannot be
    /// created: then each start assigns the names again.
    pub(crate) fn of_config(state: Option<&StateDir>, config: &Path) -> Option<Self> {
        let path = state?.file_of_config("names", config, "json")?;
        Some(Self { path, saved: 0 })
    }

    /// Reads the names of tools in these sets. Without a file, or with one that cannot be read,
    /// there are none.
    pub(crate) fn read(&self, sets: &HashSet<ReplicaSetId>) -> Vec<KeptName> {
        let read = read_json::<Vec<(ReplicaSetId, _, String)>>(&self.path);
        let names = read.unwrap_or_else(|error| {
            let file = self.path.display();
            tracing::warn!(%file, %error, "the names of the last run cannot be read; they are assigned again");
            None
        });
        let names = names.unwrap_or_default();
        let names = names.into_iter().filter(|(set, ..)| sets.contains(set));
        names
            .map(|(set, tool, name)| KeptName::new(set, tool, name))
            .collect()
    }

    /// Writes the names whenever the tools change; never ends.
    pub(crate) async fn keep(&mut self, stack: &Stack) -> std::convert::Infallible {
        let mut changes = stack.changes();
        loop {
            self.save(stack).await;
            if changes.next().await.is_none() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Writes the names that are not written yet.
    pub(crate) async fn save(&mut self, stack: &Stack) {
        let generation = stack.catalogue().generation();
        if generation == self.saved {
            return;
        }
        let (path, names) = (self.path.clone(), stack.kept_names());
        match tokio::task::spawn_blocking(move || write(&path, names)).await {
            Ok(Ok(())) => self.saved = generation,
            Ok(Err(error)) => {
                tracing::warn!(file = %self.path.display(), %error, "the names of tools cannot be written");
            }
            // the runtime ends
            Err(_) => {}
        }
    }
}

fn write(path: &Path, mut names: Vec<KeptName>) -> io::Result<()> {
    names.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    let rows = names
        .iter()
        .map(|kept| (&kept.set, &kept.tool, &*kept.name));
    write_json(path, &rows.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use callward::core::ToolName;

    use super::*;

    #[test]
    fn names_are_read_as_they_were_written_and_a_damaged_file_has_none() {
        let folder = tempfile::tempdir().unwrap();
        let state = StateDir::locate(Some(folder.path()));
        let config = folder.path().join("t.toml");
        std::fs::write(&config, "").unwrap();
        let file = NameFile::of_config(state.as_ref(), &config).unwrap();
        let set = |name: &str| ReplicaSetId::new(name).unwrap();
        let kept = |of, name: &str| KeptName::new(set(of), ToolName::new("get").unwrap(), name);
        let sets = HashSet::from([set("a"), set("b")]);
        assert_eq!(file.read(&sets), []);
        let names = vec![kept("a", "a__get"), kept("b", "get"), kept("gone", "other")];
        write(&file.path, names.clone()).unwrap();
        assert_eq!(file.read(&sets), names[..2]);
        std::fs::write(&file.path, "[[\"a\",").unwrap();
        assert_eq!(file.read(&sets), []);
    }
}
