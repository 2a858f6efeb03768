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
use callward::core::Caller;
use callward_auth::{Reason, certificate};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{interval, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use webpki::{EndEntityCert, KeyUsage};

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

    /// Returns the issuers of the principals that certificates name, one for each authority.
    pub(crate) fn issuers(&self) -> Vec<String> {
        let built = self.read().and_then(|contents| build(&contents).ok());
        let authorities = built.iter().flat_map(|built| &built.authorities.roots);
        authorities
            .map(|authority| certificate::issuer(&authority.subject_public_key_info))
            .collect()
    }

    /// Returns the key file if everyone on this machine may read it.
    pub(crate) fn open_to_others(&self) -> Option<&PathBuf> {
        #[cfg(unix)]
        let is_open = |key: &std::fs::Metadata| {
            std::os::unix::fs::PermissionsExt::mode(&key.permissions()) & 0o004 != 0
        };
        #[cfg(not(unix))]
        let is_open = |_: &std::fs::Metadata| false;
        let key = self.tls_key.as_ref()?;
        std::fs::metadata(key)
            .is_ok_and(|key| is_open(&key))
            .then_some(key)
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

/// What the files say.
#[derive(Debug)]
struct Built {
    config: Arc<ServerConfig>,
    /// Those of clients.
    authorities: Arc<RootCertStore>,
}

/// The provider is named here, so that it does not depend on what else is linked into the process.
fn build((cert, key, client_ca): &Contents) -> Result<Built, TlsError> {
    let provider = Arc::new(ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| cert.fault(error))?;
    let mut authorities = Arc::new(RootCertStore::empty());
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
            authorities = roots.into();
            let verifier =
                WebPkiClientVerifier::builder_with_provider(authorities.clone(), provider);
            let verifier = verifier.build().map_err(|error| unusable(&error))?;
            config.with_client_cert_verifier(verifier)
        }
    };
    let (chain, private_key) = (cert.certificates()?, key.private_key()?);
    let mut config = config
        .with_single_cert(chain, private_key)
        .map_err(|error| key.fault(format_args!("does not fit `http.tls_cert`: {error}")))?;
    config.alpn_protocols = vec![H2.to_vec(), b"http/1.1".to_vec()];
    Ok(Built {
        config: config.into(),
        authorities,
    })
}

impl Built {
    /// Returns who the client with these certificates is. TLS has verified the first one, but does
    /// not say which authority vouches for it.
    fn client(&self, chain: &[CertificateDer<'_>]) -> Result<Arc<Caller>, Reason> {
        let (first, others) = chain.split_first().ok_or(Reason::Missing)?;
        let parsed = EndEntityCert::try_from(first).map_err(|_| Reason::Malformed)?;
        let provider = ring::default_provider();
        let path = parsed.verify_for_usage(
            provider.signature_verification_algorithms.all,
            &self.authorities.roots,
            others,
            UnixTime::now(),
            KeyUsage::client_auth(),
            None,
            None,
        );
        let path = path.map_err(|_| Reason::Issuer)?;
        let authority = &path.anchor().subject_public_key_info;
        certificate::caller(first, authority).map(Arc::new)
    }
}

/// What handshakes use.
#[derive(Debug)]
pub(crate) struct Tls {
    files: TlsFiles,
    used: ArcSwap<Built>,
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
            used: ArcSwap::from_pointee(build(&contents)?),
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
                Some(Ok(built)) => {
                    self.used.store(Arc::new(built));
                    tracing::info!("changed files of `http.tls_cert` are in use");
                }
                Some(Err(error)) => {
                    tracing::warn!(%error, "changed files of `http.tls_cert` are not used");
                }
            }
            used = hash;
        }
    }

    /// Makes the handshake of a new connection, and reads the client's certificate.
    ///
    /// # Errors
    ///
    /// If it fails, or takes longer than it may.
    pub(super) async fn accept<S>(&self, stream: S) -> io::Result<Accepted<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let used = self.used.load_full();
        let acceptor = TlsAcceptor::from(used.config.clone());
        let stream = timeout(HANDSHAKE, acceptor.accept(stream)).await??;
        let chain = stream.get_ref().1.peer_certificates();
        let certificate = chain.map(|chain| Arc::new(PeerCertificate(used.client(chain))));
        Ok((stream, certificate))
    }
}

/// A connection, and the certificate of its client if clients need one.
type Accepted<S> = (TlsStream<S>, Option<Arc<PeerCertificate>>);

/// Whom the certificate of a client names, or why it cannot be used. Its authority is one of
/// `http.client_ca`, and the client has proved to have its key. It is in the extensions of each of
/// the client's requests.
#[derive(Debug)]
pub(crate) struct PeerCertificate(pub(crate) Result<Arc<Caller>, Reason>);
