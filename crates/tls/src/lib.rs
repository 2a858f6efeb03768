//! The TLS of outgoing connections: of clients of servers, issuers, webhooks and collectors.
//!
//! The provider is [ring], named here, so that it does not depend on what else is linked into the
//! process. Servers are verified as the operating system does it, with its roots.
//!
//! ```
//! // for plain HTTP, which works on machines without any certificate
//! let config = callward_tls::client_config(false)?;
//! # drop(config);
//! # Ok::<(), callward_tls::TlsError>(())
//! ```
//!
//! [ring]: rustls::crypto::ring

use std::sync::Arc;

use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::Verifier;

/// Why there is no TLS.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// The provider lacks what a version of the protocol needs.
    #[error("no TLS: {0}")]
    Versions(rustls::Error),
    /// The operating system's roots cannot be used.
    #[error("no TLS: the system's certificates cannot be used: {0}")]
    Roots(rustls::Error),
}

/// Returns the settings of connections that verify the server with the system's roots. Without
/// `verifies` no root is read, and no server is trusted: for clients of plain HTTP alone.
///
/// # Errors
///
/// [`TlsError`] if the system has no usable roots.
pub fn client_config(verifies: bool) -> Result<ClientConfig, TlsError> {
    let provider = Arc::new(ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Versions)?;
    if !verifies {
        let none = RootCertStore::empty();
        return Ok(config.with_root_certificates(none).with_no_client_auth());
    }
    let verifier = Verifier::new(provider).map_err(TlsError::Roots)?;
    Ok(config
        .dangerous() // "dangerous" is any verifier but rustls' own; this is the system's
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth())
}
