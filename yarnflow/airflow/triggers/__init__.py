"""What Airflow's triggerer runs for deferred tasks and watched assets: asynchronous, blocks nothing."""
