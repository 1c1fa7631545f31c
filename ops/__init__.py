"""Running Tracon: migrations, measurements, alerts, and the decisions behind them."""
