//! [`http_client`]: what every HTTP client of toolloop begins with.

use std::sync::{Arc, OnceLock};

use reqwest::ClientBuilder;
use rustls::client::danger::ServerCertVerifier;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::Verifier;

/// A client that trusts whom the platform trusts and says that it is toolloop; redirects, time
/// limits and the rest are the caller's to set.
///
/// TLS is rustls with ring, handed to reqwest ready-made: a library must not install a crypto
/// provider for the whole process, and reqwest alone would want one installed. Certificates are
/// judged by the platform's own store, so that the roots which an administrator added (a company
/// proxy) are good here too; the roots compiled in by `webpki-roots` would not know them.
///
/// # Errors
/// When ring cannot do any version of TLS.
pub fn http_client() -> Result<ClientBuilder, rustls::Error> {
    Ok(reqwest::Client::builder()
        .tls_backend_preconfigured(tls_config()?)
        .user_agent(concat!("toolloop/", env!("CARGO_PKG_VERSION"))))
}

/// Made once: reading the platform's roots takes milliseconds.
fn tls_config() -> Result<ClientConfig, rustls::Error> {
    static CONFIG: OnceLock<Result<ClientConfig, rustls::Error>> = OnceLock::new();
    CONFIG.get_or_init(new_tls_config).clone()
}

fn new_tls_config() -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()?;
    let mut config = match Verifier::new(provider) {
        Ok(verifier) => {
            let verifier: Arc<dyn ServerCertVerifier> = Arc::new(verifier);
            builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth()
        }
        // No roots (a bare container): servers without TLS still work, the others are not trusted.
        Err(_) => builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth(),
    };
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}
