//! Where evidence about the freshness of answers is kept between runs.

use std::time::Duration;

use callward::Stack;

/// How often new evidence is written. A crash loses at most this much.
const SAVE_EVERY: Duration = Duration::from_secs(10);

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
    use crate::state_dir::StateDir;

    #[test]
    fn each_config_and_command_has_a_file_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let state = StateDir::locate(Some(folder.path()));
        let of = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            let state = state.as_ref().unwrap();
            state.file_of_command("evidence", &words, "jsonl").unwrap()
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
