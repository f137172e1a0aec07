"""The decisions of the CronJob controller, a module per topic; ``controller.py`` calls them in order."""
