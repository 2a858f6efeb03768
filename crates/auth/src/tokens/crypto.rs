//! Signatures, with ring. `jsonwebtoken` panics at the first token if no provider is installed, and
//! has none on ring, so this one is installed before any token is read.

use std::sync::OnceLock;

use jsonwebtoken::crypto::{CryptoProvider, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{Error, ErrorKind, Result, new_error};
use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind, signature};
use ring::error::Unspecified;
use ring::signature as scheme;
use ring::signature::{RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey};

/// Verifies, and nothing else: what would sign or convert keys is an error.
static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: |_, _| Err(unsupported()),
    verifier_factory: |algorithm, key| Ok(Box::new(Ring::new(*algorithm, key)?)),
    key_utils: KeyUtils {
        rsa_pub_components_from_private_key: |_| Err(unsupported()),
        rsa_pub_components_from_public_key: |_| Err(unsupported()),
        ec_pub_components_from_private_key: |_, _| Err(unsupported()),
        ed_pub_components_from_private_key: |_, _| Err(unsupported()),
        compute_digest: |_, _| Err(unsupported()),
    },
};

fn unsupported() -> Error {
    new_error(ErrorKind::UnsupportedAlgorithm)
}

/// Installs the provider, once in this process. `false`: someone else installed another.
pub(super) fn install() -> bool {
    static INSTALLED: OnceLock<bool> = OnceLock::new();
    *INSTALLED.get_or_init(|| PROVIDER.install_default().is_ok())
}

/// How ring takes the public key.
enum Scheme {
    /// As its two numbers.
    Rsa(&'static RsaParameters),
    /// As its bytes.
    Curve(&'static dyn scheme::VerificationAlgorithm),
}

struct Ring {
    algorithm: Algorithm,
    scheme: Scheme,
    key: DecodingKey,
}

impl Ring {
    fn new(algorithm: Algorithm, key: &DecodingKey) -> Result<Self> {
        if key.family() != algorithm.family() {
            return Err(new_error(ErrorKind::InvalidKeyFormat));
        }
        let scheme = match algorithm {
            Algorithm::RS256 => Scheme::Rsa(&scheme::RSA_PKCS1_2048_8192_SHA256),
            Algorithm::RS384 => Scheme::Rsa(&scheme::RSA_PKCS1_2048_8192_SHA384),
            Algorithm::RS512 => Scheme::Rsa(&scheme::RSA_PKCS1_2048_8192_SHA512),
            Algorithm::PS256 => Scheme::Rsa(&scheme::RSA_PSS_2048_8192_SHA256),
            Algorithm::PS384 => Scheme::Rsa(&scheme::RSA_PSS_2048_8192_SHA384),
            Algorithm::PS512 => Scheme::Rsa(&scheme::RSA_PSS_2048_8192_SHA512),
            Algorithm::ES256 => Scheme::Curve(&scheme::ECDSA_P256_SHA256_FIXED),
            Algorithm::ES384 => Scheme::Curve(&scheme::ECDSA_P384_SHA384_FIXED),
            Algorithm::EdDSA => Scheme::Curve(&scheme::ED25519),
            _ => return Err(unsupported()),
        };
        let key = key.clone();
        Ok(Self {
            algorithm,
            scheme,
            key,
        })
    }
}

impl signature::Verifier<Vec<u8>> for Ring {
    fn verify(
        &self,
        message: &[u8],
        signature: &Vec<u8>,
    ) -> std::result::Result<(), signature::Error> {
        let verified = match (&self.scheme, self.key.kind()) {
            (Scheme::Rsa(parameters), DecodingKeyKind::RsaModulusExponent { n, e }) => {
                // some issuers write the sign of a big integer too
                let n = n.strip_prefix(&[0]).unwrap_or(n);
                RsaPublicKeyComponents { n, e }.verify(parameters, message, signature)
            }
            (Scheme::Curve(scheme), DecodingKeyKind::SecretOrDer(key)) => {
                UnparsedPublicKey::new(*scheme, key).verify(message, signature)
            }
            _ => Err(Unspecified),
        };
        verified.map_err(|_| signature::Error::new())
    }
}

impl JwtVerifier for Ring {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}
