//! Seals what is written into the file, with a key beside it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::Path;

use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom, SystemRandom};

/// Seals with ChaCha20-Poly1305, under a random nonce each time.
pub(crate) struct Sealer {
    key: LessSafeKey,
    random: SystemRandom,
}

impl Sealer {
    /// Takes the key from its file. With `may_make` it is made if there is none.
    pub(crate) fn open(path: &Path, may_make: bool) -> io::Result<Self> {
        let random = SystemRandom::new();
        let mut key = match fs::read(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            read => read?,
        };
        // also one of which a process that was killed wrote a part
        if may_make && key.len() != 32 {
            key = vec![0; 32];
            random.fill(&mut key).map_err(|_| unspecified())?;
            let mut file = private(path)?;
            file.set_len(0)?;
            file.write_all(&key)?;
            file.sync_all()?;
        }
        let key = UnboundKey::new(&CHACHA20_POLY1305, &key);
        let key = key.map_err(|_| io::Error::new(ErrorKind::InvalidData, "not a key"))?;
        Ok(Self {
            key: LessSafeKey::new(key),
            random,
        })
    }

    /// Seals bytes for the place of this name.
    pub(crate) fn seal(&self, name: &str, mut bytes: Vec<u8>) -> io::Result<Vec<u8>> {
        let mut nonce = [0; NONCE_LEN];
        self.random.fill(&mut nonce).map_err(|_| unspecified())?;
        let unique = Nonce::assume_unique_for_key(nonce);
        let sealed = self
            .key
            .seal_in_place_append_tag(unique, Aad::from(name), &mut bytes);
        sealed.map_err(|_| unspecified())?;
        bytes.splice(0..0, nonce);
        Ok(bytes)
    }

    /// Opens what was sealed for this place; `None` if it was not.
    pub(crate) fn unseal(&self, name: &str, sealed: &[u8]) -> Option<Vec<u8>> {
        let (nonce, sealed) = sealed.split_first_chunk::<NONCE_LEN>()?;
        let (nonce, mut sealed) = (Nonce::assume_unique_for_key(*nonce), sealed.to_vec());
        let length = self
            .key
            .open_in_place(nonce, Aad::from(name), &mut sealed)
            .ok()?
            .len();
        sealed.truncate(length);
        Some(sealed)
    }
}

fn unspecified() -> io::Error {
    io::Error::other("the system has no random bits, or cannot seal")
}

/// Opens a file for this user alone, also if it was made with a wider mode.
pub(crate) fn private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    #[cfg(unix)]
    file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    Ok(file)
}
