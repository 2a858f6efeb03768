//! The state that a client holds between two rounds: sealed, so that it can neither be read nor
//! changed, and bound to the request that it belongs to.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use callward::ServerId;
use callward::core::FingerprintKey;
use callward_mcp::server::CallRequest;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::error::Unspecified;
use ring::rand::{SecureRandom, SystemRandom};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::time::Instant;

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
    pub(super) fn binding(&self, request: &CallRequest) -> Vec<u8> {
        let arguments = self.arguments.json(&request.arguments);
        let arguments = arguments.unwrap_or_else(|| self.arguments.bytes(&request.arguments));
        let principal = request.caller.principal.as_str();
        let method = request.method.as_str();
        let mut binding = Vec::new();
        for part in [principal, method, &request.name] {
            // with its length, so that no two lists of parts are equal
            binding.extend_from_slice(&part.len().to_le_bytes());
            binding.extend_from_slice(part.as_bytes());
        }
        binding.extend_from_slice(&arguments.to_le_bytes());
        binding
    }

    /// Seals a state for a request with this binding, as a JSON string.
    pub(super) fn seal(&self, binding: &[u8], state: State) -> Result<String, Unspecified> {
        let expires = self.age().saturating_add(LIFETIME.as_secs());
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
