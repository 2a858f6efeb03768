//! The state that a client holds between two requests: sealed, so that it can neither be read nor
//! changed, and bound to the request or the principal that it belongs to.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use callward::core::{FingerprintKey, ToolName};
use callward::{Principal, ReplicaSetId, ServerId};
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::error::Unspecified;
use ring::rand::{SecureRandom, SystemRandom};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::Binding;

/// How long a client may take for a round.
pub(crate) const LIFETIME: Duration = Duration::from_secs(600);

/// What a state stands for.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum State {
    /// A server that asked in a result waits for nothing: the next round goes to it, with its own
    /// state if it has one.
    Server {
        id: ServerId,
        state: Option<Box<RawValue>>,
    },
    /// A call that is still open, by its number.
    Open(u64),
    /// A call that waits for approval, and how often it has come again.
    Approval(u8),
    /// A task of a server.
    Task(Task),
}

/// A task of a server, and the tool that made it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Task {
    pub(crate) server: ServerId,
    pub(crate) set: ReplicaSetId,
    pub(crate) tool: ToolName,
    /// The server's own id of the task.
    pub(crate) id: String,
}

#[derive(Serialize, Deserialize)]
struct Sealed {
    /// In seconds since the key was made.
    expires: u64,
    state: State,
}

/// Seals states with a key of this process.
pub(super) struct Sealer {
    /// None if the system has no random bytes: then nothing is sealed.
    key: Option<LessSafeKey>,
    made: Instant,
    random: SystemRandom,
    /// For arguments: a client may write them in another form when it calls again.
    arguments: FingerprintKey,
}

impl Sealer {
    /// Makes a key.
    pub(super) fn new() -> Self {
        let random = SystemRandom::new();
        let mut key = [0; 32];
        let key = random
            .fill(&mut key)
            .and_then(|()| UnboundKey::new(&CHACHA20_POLY1305, &key));
        Self {
            key: key.ok().map(LessSafeKey::new),
            made: Instant::now(),
            random,
            arguments: FingerprintKey::new(fastrand::u64(..), fastrand::u64(..)),
        }
    }

    /// Returns what a state is bound to: the principal, the method, what it is about, and the
    /// arguments.
    pub(super) fn binding(&self, request: &Binding) -> Vec<u8> {
        let arguments = self.arguments.json(&request.arguments);
        let arguments = arguments.unwrap_or_else(|| self.arguments.bytes(&request.arguments));
        let principal = request.caller.principal.as_str();
        let method = request.method.as_str();
        let mut binding = parts(&[principal, method, &request.name]);
        binding.extend_from_slice(&arguments.to_le_bytes());
        binding
    }

    /// Returns what the tasks of a principal are bound to.
    pub(super) fn task_binding(principal: &Principal) -> Vec<u8> {
        parts(&[principal.as_str(), "tasks"])
    }

    /// Seals a state for requests with this binding, for so long, as a JSON string.
    pub(super) fn seal(
        &self,
        binding: &[u8],
        state: State,
        lifetime: Duration,
    ) -> Result<String, Unspecified> {
        let expires = self.age().saturating_add(lifetime.as_secs());
        let sealed = serde_json::to_vec(&Sealed { expires, state });
        let mut sealed = sealed.map_err(|_| Unspecified)?;
        let mut nonce = [0; NONCE_LEN];
        self.random.fill(&mut nonce)?;
        let unique = Nonce::assume_unique_for_key(nonce);
        let key = self.key.as_ref().ok_or(Unspecified)?;
        key.seal_in_place_append_tag(unique, Aad::from(binding), &mut sealed)?;
        Ok(format!(
            "\"{}\"",
            BASE64.encode([&nonce[..], &sealed].concat())
        ))
    }

    /// Opens a state; `None` if it was not sealed here for such a request, or has expired.
    pub(super) fn open(&self, binding: &[u8], raw: &[u8]) -> Option<State> {
        let text: String = serde_json::from_slice(raw).ok()?;
        let mut sealed = BASE64.decode(text).ok()?;
        let (nonce, sealed) = sealed.split_first_chunk_mut::<NONCE_LEN>()?;
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let key = self.key.as_ref()?;
        let opened = key.open_in_place(nonce, Aad::from(binding), sealed);
        let opened: Sealed = serde_json::from_slice(opened.ok()?).ok()?;
        (self.age() < opened.expires).then_some(opened.state)
    }

    fn age(&self) -> u64 {
        self.made.elapsed().as_secs()
    }
}

/// Joins texts, each with its length, so that no two lists of them are equal.
fn parts(texts: &[&str]) -> Vec<u8> {
    let mut joined = Vec::new();
    for text in texts {
        joined.extend_from_slice(&text.len().to_le_bytes());
        joined.extend_from_slice(text.as_bytes());
    }
    joined
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn opens(sealer: &Sealer, binding: &[u8], sealed: &str) -> bool {
        sealer.open(binding, sealed.as_bytes()).is_some()
    }

    proptest! {
        #[test]
        fn what_is_sealed_opens_unchanged_for_its_own_and_in_time_only(
            [own, other] in proptest::array::uniform2("[a-z]{0,3}"),
            id in ".{0,40}",
            at in any::<prop::sample::Index>(),
            bit in 0..8_u32,
            age in 0..120_u64,
            lifetime in 1..120_u64,
        ) {
            let runtime = tokio::runtime::Builder::new_current_thread();
            let runtime = { runtime }.enable_time().start_paused(true).build().unwrap();
            runtime.block_on(async {
                let sealer = Sealer::new();
                let bound = |to: &str| Sealer::task_binding(&Principal::new(to));
                let task = Task {
                    server: "a".parse().unwrap(),
                    set: "b".parse().unwrap(),
                    tool: ToolName::new("c").unwrap(),
                    id: id.clone(),
                };
                let lifetime = Duration::from_secs(lifetime);
                let sealed = sealer.seal(&bound(&own), State::Task(task), lifetime).unwrap();
                tokio::time::advance(Duration::from_secs(age)).await;
                let opened = sealer.open(&bound(&own), sealed.as_bytes());
                let is_in_time = age < lifetime.as_secs();
                let opened = opened.map(|state| match state {
                    State::Task(task) => task.id,
                    other => format!("{other:?}"),
                });
                prop_assert_eq!(opened, is_in_time.then_some(id));
                prop_assert_eq!(opens(&sealer, &bound(&other), &sealed), is_in_time && own == other);
                // requests of another form, and another process
                prop_assert!(!opens(&sealer, &parts(&[&own, "tasks", ""]), &sealed));
                prop_assert!(!opens(&Sealer::new(), &bound(&own), &sealed));
                let text: String = serde_json::from_str(&sealed).unwrap();
                let mut forged = BASE64.decode(text).unwrap();
                let at = at.index(forged.len());
                forged[at] ^= 1 << bit;
                let forged = format!("\"{}\"", BASE64.encode(forged));
                prop_assert!(!opens(&sealer, &bound(&own), &forged));
                Ok(())
            })?;
        }
    }
}
