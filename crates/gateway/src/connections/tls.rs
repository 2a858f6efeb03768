//! TLS of the public listener: its certificate, its key, and the authority of its clients.
//!
//! The files are read again while the gateway serves. New connections use what is new, open ones go
//! on with what they began with.

use std::convert::Infallible;
use std::fmt::Display;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{interval, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use webpki::EndEntityCert;

/// HTTP/2 by its name in ALPN.
pub(super) const H2: &[u8] = b"h2";

/// How long a handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// How often the files are read.
const POLL: Duration = Duration::from_secs(2);

/// The largest file that is read: a bundle of all public authorities has 250 KiB.
const LARGEST: u64 = 4 << 20;

/// Files in PEM: keys of `[http]`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct TlsFiles {
    /// The certificate and those of the authorities between it and a root.
    pub(crate) tls_cert: Option<PathBuf>,
    pub(crate) tls_key: Option<PathBuf>,
    /// The authorities that vouch for clients; without it, clients need no certificate.
    pub(crate) client_ca: Option<PathBuf>,
}

/// Why the files cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("`{key}`: {message}")]
pub(crate) struct TlsError {
    pub(crate) key: &'static str,
    pub(crate) message: String,
}

/// What a file had in it when it was read. It has no `Debug`: one of them is the key.
#[derive(Hash)]
struct Content {
    key: &'static str,
    path: PathBuf,
    bytes: Result<Vec<u8>, io::ErrorKind>,
}

impl Content {
    fn fault(&self, what: impl Display) -> TlsError {
        TlsError {
            key: self.key,
            message: format!("the file {} {what}", self.path.display()),
        }
    }

    fn bytes(&self) -> Result<&[u8], TlsError> {
        let bytes = self.bytes.as_deref();
        bytes.map_err(|kind| self.fault(format_args!("cannot be read: {kind}")))
    }

    fn certificates(&self) -> Result<Vec<CertificateDer<'static>>, TlsError> {
        let found = CertificateDer::pem_slice_iter(self.bytes()?).collect::<Result<Vec<_>, _>>();
        let found = found.ok().filter(|found| !found.is_empty());
        found.ok_or_else(|| self.fault("has no certificates in PEM, which are expected"))
    }

    fn private_key(&self) -> Result<PrivateKeyDer<'static>, TlsError> {
        PrivateKeyDer::from_pem_slice(self.bytes()?).map_err(|_| {
            self.fault("has no private key in PEM, which is expected, without a password")
        })
    }
}

/// The certificate, its key, and the authorities of clients.
type Contents = (Content, Content, Option<Content>);

impl TlsFiles {
    /// Checks that the files can be used.
    ///
    /// # Errors
    ///
    /// [`TlsError`] names the file and what was expected.
    pub(crate) fn check(&self) -> Result<(), TlsError> {
        self.read()
            .map_or(Ok(()), |contents| build(&contents).map(drop))
    }

    /// Returns the key file if everyone on this machine may read it.
    pub(crate) fn open_to_others(&self) -> Option<&PathBuf> {
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;

            let is_open = |key: &&PathBuf| {
                let mode = std::fs::metadata(key).map_or(0, |key| key.permissions().mode());
                mode & 0o004 != 0
            };
            self.tls_key.as_ref().filter(is_open)
        }
        #[cfg(not(unix))]
        None
    }

    /// Returns `None` if there is no certificate or no key to read.
    fn read(&self) -> Option<Contents> {
        let content = |key, path: &Option<PathBuf>| {
            let path = path.clone()?;
            let mut bytes = Vec::new();
            let read =
                File::open(&path).and_then(|file| file.take(LARGEST + 1).read_to_end(&mut bytes));
            let bytes = match read {
                Ok(read) if read as u64 > LARGEST => Err(io::ErrorKind::FileTooLarge),
                Ok(_) => Ok(bytes),
                Err(error) => Err(error.kind()),
            };
            Some(Content { key, path, bytes })
        };
        let cert = content("http.tls_cert", &self.tls_cert)?;
        let key = content("http.tls_key", &self.tls_key)?;
        Some((cert, key, content("http.client_ca", &self.client_ca)))
    }
}

/// The provider is named here, so that it does not depend on what else is linked into the process.
fn build((cert, key, client_ca): &Contents) -> Result<ServerConfig, TlsError> {
    let provider = Arc::new(ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| cert.fault(error))?;
    let config = match client_ca {
        None => config.with_no_client_auth(),
        Some(file) => {
            let unusable = |error: &dyn Display| {
                file.fault(format_args!(
                    "has an authority that cannot be used: {error}"
                ))
            };
            let mut roots = RootCertStore::empty();
            for authority in file.certificates()? {
                roots.add(authority).map_err(|error| unusable(&error))?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider);
            let verifier = verifier.build().map_err(|error| unusable(&error))?;
            config.with_client_cert_verifier(verifier)
        }
    };
    let (chain, private_key) = (cert.certificates()?, key.private_key()?);
    let mut config = config
        .with_single_cert(chain, private_key)
        .map_err(|error| key.fault(format_args!("does not fit `http.tls_cert`: {error}")))?;
    config.alpn_protocols = vec![H2.to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

/// What handshakes use.
#[derive(Debug)]
pub(crate) struct Tls {
    files: TlsFiles,
    config: ArcSwap<ServerConfig>,
    hasher: RandomState,
    /// The hash of the contents that were read first.
    first: u64,
}

impl Tls {
    /// Reads the files; `None` if none are named.
    ///
    /// # Errors
    ///
    /// [`TlsError`] names the file and what was expected.
    pub(crate) fn open(files: &TlsFiles) -> Result<Option<Arc<Self>>, TlsError> {
        let Some(contents) = files.read() else {
            return Ok(None);
        };
        let hasher = RandomState::new();
        Ok(Some(Arc::new(Self {
            config: ArcSwap::from_pointee(build(&contents)?),
            first: hasher.hash_one(Some(&contents)),
            hasher,
            files: files.clone(),
        })))
    }

    /// Reads the files again and again. Contents count once they are the same twice, since a
    /// certificate and its key are not replaced at once; if they cannot be used, what was in use
    /// stays.
    pub(crate) async fn watch(self: Arc<Self>) -> Infallible {
        let (mut used, mut before) = (self.first, self.first);
        let mut polls = interval(POLL);
        loop {
            polls.tick().await;
            let tls = self.clone();
            let read = tokio::task::spawn_blocking(move || {
                let contents = tls.files.read();
                let hash = tls.hasher.hash_one(contents.as_ref());
                let is_new = hash != used && hash == before;
                (hash, contents.filter(|_| is_new).map(|new| build(&new)))
            });
            let Ok((hash, built)) = read.await else {
                continue; // the runtime ends
            };
            before = hash;
            match built {
                None => continue,
                Some(Ok(config)) => {
                    self.config.store(Arc::new(config));
                    tracing::info!("changed files of `http.tls_cert` are in use");
                }
                Some(Err(error)) => {
                    tracing::warn!(%error, "changed files of `http.tls_cert` are not used");
                }
            }
            used = hash;
        }
    }

    /// Makes the handshake of a new connection.
    ///
    /// # Errors
    ///
    /// If it fails, or takes longer than it may.
    pub(super) async fn accept<S>(&self, stream: S) -> io::Result<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let acceptor = TlsAcceptor::from(self.config.load_full());
        timeout(HANDSHAKE, acceptor.accept(stream)).await?
    }
}

/// The certificate of a client whose authority is one of `http.client_ca`, and which has proved to
/// have its key. It is in the extensions of each of its requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PeerCertificate {
    pub(crate) der: CertificateDer<'static>,
    /// Names of hosts in `subjectAltName`.
    pub(crate) dns_names: Vec<String>,
    /// URIs in `subjectAltName`, such as SPIFFE ids.
    pub(crate) uris: Vec<String>,
}

impl PeerCertificate {
    /// Returns the certificate that the client of a connection has shown.
    pub(super) fn of<S>(stream: &TlsStream<S>) -> Option<Arc<Self>> {
        let der = stream.get_ref().1.peer_certificates()?.first()?;
        let parsed = EndEntityCert::try_from(der).ok()?;
        Some(Arc::new(Self {
            dns_names: parsed.valid_dns_names().map(Into::into).collect(),
            uris: parsed.valid_uri_names().map(Into::into).collect(),
            der: der.clone().into_owned(),
        }))
    }
}
