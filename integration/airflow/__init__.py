"""The provider in a real Apache Airflow, which runs in an environment of its own."""
