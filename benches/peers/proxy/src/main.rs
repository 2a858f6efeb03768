//! `rs-proxy FILE`: serves what the file says, by the crate's own reader and server.

use std::error::Error;

use mcp_proxy::{Proxy, ProxyConfig};

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1).ok_or("rs-proxy FILE")?;
    let config = ProxyConfig::load(file.as_ref())?;
    tokio::runtime::Runtime::new()?.block_on(async {
        let proxy = Proxy::from_config(config).await?;
        proxy.serve().await?;
        Ok(())
    })
}
