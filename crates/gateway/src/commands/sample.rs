//! `callward sample`: one of the sample's servers, without the stack.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::serve::ListenerExt;

use crate::config::Config;
use crate::error::{AppError, Outcome};
use crate::{connections, http, output, sample, shutdown, stdio};

pub(crate) async fn run(http: Option<SocketAddr>) -> Outcome {
    let stop = shutdown::on_signal()?;
    let backend = Arc::new(sample::plain().await?);
    let config = Config::without_file(Vec::new()).http;
    if let Some(address) = http {
        let listener = http::bind(address, "--http").await?;
        output::note(format_args!(
            "sample listening on http://{}/mcp",
            http::bound(&listener)?
        ));
        let endpoint = http::endpoint(
            backend,
            Arc::<callward_mcp::server::Anonymous>::default(),
            &config,
            &stop,
        )?;
        let routes = http::routes(endpoint, Router::new(), false);
        let drained = stop.drained.clone();
        let listener = listener.tap_io(connections::prepare);
        let limits = config.connections.clone();
        let serving = async {
            connections::serve(listener, Some, routes, limits, None, drained).await;
            Ok(())
        };
        let (calls, limit) = (stop.calls.wait(), config.drain);
        let served = shutdown::serve(serving, calls, async {}, &stop, Duration::ZERO, limit);
        served.await.map_err(AppError::io("the listener broke"))?;
    } else {
        stdio::serve(backend, config.drain, async {}, &stop).await?;
    }
    Ok(ExitCode::SUCCESS)
}
