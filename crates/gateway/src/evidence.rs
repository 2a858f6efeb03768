//! Where evidence about the freshness of answers is kept between runs.

use std::path::PathBuf;
use std::time::Duration;

use callward::Stack;

use crate::state_dir::StateDir;

/// How often new evidence is written. A crash loses at most this much.
const SAVE_EVERY: Duration = Duration::from_secs(10);

/// Returns the file of one wrapped command.
pub(crate) fn file_of_command(state: Option<&StateDir>, command: &[String]) -> Option<PathBuf> {
    let folder = std::env::current_dir().ok()?;
    let mut text = folder.into_os_string().into_encoded_bytes();
    for word in command {
        text.push(0);
        text.extend_from_slice(word.as_bytes());
    }
    state?.file_of("evidence", &text, "jsonl")
}

/// Writes new evidence again and again; never ends.
pub(crate) async fn keep(stack: Stack) -> std::convert::Infallible {
    loop {
        tokio::time::sleep(SAVE_EVERY).await;
        save(&stack).await;
    }
}

/// Writes new evidence, if there is any.
pub(crate) async fn save(stack: &Stack) {
    let cache = stack.cache().clone();
    let saved = tokio::task::spawn_blocking(move || cache.save_evidence()).await;
    if let Ok(Err(error)) = saved {
        tracing::warn!(%error, "evidence of freshness cannot be written");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_config_and_command_has_a_file_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let state = StateDir::locate(Some(folder.path()));
        let of = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            file_of_command(state.as_ref(), &words).unwrap()
        };
        assert_eq!(of(&["a", "b"]), of(&["a", "b"]));
        assert_ne!(of(&["a", "b"]), of(&["a b"]));
        let config = folder.path().join("t.toml");
        let of_config = || state.as_ref()?.file_of_config("evidence", &config, "jsonl");
        assert_eq!(of_config(), None, "not there");
        std::fs::write(&config, "").unwrap();
        let file = of_config().unwrap();
        assert!(file.starts_with(folder.path().join("evidence")));
    }
}
